# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays from NumPy's own DLPack structures, and ours as NumPy would make
them; what no array can be is refused."""

import ctypes
import os
import unittest

import numpy
from hidet._library import Array

TYPES = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
         "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
         "f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool"}


class Tensor(ctypes.Structure):
    """DLTensor; its strides may be NULL."""
    _fields_ = [("data", ctypes.c_void_p), ("place", ctypes.c_int32 * 2),
                ("rank", ctypes.c_int32), ("type", ctypes.c_uint8 * 4),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


def exported(array):
    """NumPy's DLTensor, the first member of its DLManagedTensor, and who has it."""
    capsule = array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return Tensor.from_address(pointer(capsule, b"dltensor")), capsule


class Dlpack(unittest.TestCase):
    def setUp(self):
        self.library = ctypes.CDLL(os.environ["HIDET_LIBRARY"])
        self.take = self.library.hidet_array_from_dlpack
        self.give = self.library.hidet_array_to_dlpack
        self.take.argtypes = [ctypes.c_void_p] * 3
        self.give.argtypes = [ctypes.c_void_p] * 4

    def test_types_and_shapes(self):
        for ours, theirs in TYPES.items():
            for shape in ((), (3,), (2, 3), (2, 0, 4), (1, 5, 1)):
                x = numpy.zeros(shape, theirs)
                tensor, capsule = exported(x)
                array = Array()
                self.assertEqual(self.take(None, ctypes.addressof(tensor), ctypes.addressof(array)), 0)
                self.assertEqual(array.type.decode(), ours)
                self.assertEqual(tuple(array.shape[:array.rank]), shape)
                self.assertEqual(array.data, tensor.data)
                again = Tensor()
                strides = (ctypes.c_int64 * 16)()
                self.assertEqual(self.give(None, ctypes.addressof(array), ctypes.addressof(strides),
                                           ctypes.addressof(again)), 0)
                for field in ("data", "rank", "offset"):
                    self.assertEqual(getattr(again, field), getattr(tensor, field))
                for field in ("place", "type"):
                    self.assertEqual(list(getattr(again, field)), list(getattr(tensor, field)))
                self.assertEqual(again.shape[:again.rank], list(shape))
                self.assertEqual(ctypes.addressof(again.strides.contents), ctypes.addressof(strides))
                if x.size:  # Else NumPy's may be anything.
                    self.assertEqual(again.strides[:x.ndim], [s // x.itemsize for s in x.strides])
                del capsule

    def refused(self, tensor, why):
        array = Array(rank=7)
        self.assertEqual(self.take(None, ctypes.addressof(tensor), ctypes.addressof(array)), 2)
        messages = self.library.hidet_messages
        messages.restype = ctypes.c_char_p
        self.assertIn(why, messages().decode())
        self.assertEqual((array.rank, array.type), (0, None))

    def test_what_is_refused(self):
        x = numpy.zeros((4, 6), "float32")
        self.refused(exported(x.T)[0], "not row-major")
        self.refused(exported(x[:, ::2])[0], "not row-major")
        self.refused(exported(x[:, :3])[0], "not row-major")
        self.refused(exported(numpy.zeros(3, "complex64"))[0], "elements that no array has")
        tensor, capsule = exported(x)
        tensor.place[0] = 2
        self.refused(tensor, "another device's memory")
        tensor.place[0] = 1
        tensor.rank = 17
        self.refused(tensor, "at most 16 axes")
        tensor.rank = 2
        tensor.type[2] = 2  # Lanes.
        self.refused(tensor, "elements that no array has")
        tensor.type[2] = 1

    def test_arrays_of_too_many_axes_are_refused(self):
        for rank in (17, 2**32 - 1):
            array = Array(type=b"f32", rank=rank)
            self.assertEqual(self.give(None, ctypes.addressof(array),
                                       ctypes.addressof((ctypes.c_int64 * 17)()),
                                       ctypes.addressof(Tensor())), 2)

    def test_an_offset_counts(self):
        x = numpy.arange(12, dtype="float32").reshape(3, 4)
        tensor, capsule = exported(x)
        tensor.offset = 16
        array = Array()
        self.assertEqual(self.take(None, ctypes.addressof(tensor), ctypes.addressof(array)), 0)
        self.assertEqual(ctypes.c_float.from_address(array.data).value, 4)
        tensor.offset = 0


if __name__ == "__main__":
    unittest.main()
