# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checks find what they are for: each is given a planted fault."""

import pathlib
import tempfile
import unittest

import check_documents
import check_includes
import check_intrinsics
import check_names
import check_nulls
import check_package
import check_sources
import check_symbols

LICENCE = "// " + check_sources.LICENCE + "\n"


class Checks(unittest.TestCase):
    def faults(self, check, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(check.faults(root))

    def includes(self, name, line):
        return self.faults(check_includes, {name: line + "\n"})

    def test_includes_down_are_fine(self):
        self.assertEqual([], self.includes("lib/Graph/A.c", '#include "IR/B.h"'))
        self.assertEqual([], self.includes("lib/IR/A.c", '#include "IR/B.h"'))
        self.assertEqual([], self.includes("lib/IR/A.c", "#include <stdio.h>"))
        self.assertEqual([], self.includes(
            "lib/CodeGen/A.c", "#include <llvm-c/Core.h>"))

    def test_includes_up_are_found(self):
        [fault] = self.includes("lib/IR/A.c", '#include "Graph/B.h"')
        self.assertIn("lib/IR/A.c:1", fault)

    def test_rooms_have_an_order(self):
        self.assertEqual([], self.includes(
            "lib/IR/Text/A.c", '#include "IR/Graph/B.h"'))
        [fault] = self.includes("lib/IR/Graph/A.c", '#include "IR/Text/B.h"')
        self.assertIn("lib/IR/Graph is below lib/IR/Text", fault)
        [fault] = self.includes("lib/IR/A.c", '#include "IR/Passes/B.h"')
        self.assertIn("lib/IR is below lib/IR/Passes", fault)
        self.assertTrue(self.includes("lib/IR/Attic/A.c", '#include "IR/B.h"'))

    def test_llvm_outside_codegen_is_found(self):
        self.assertTrue(self.includes(
            "lib/Runtime/A.c", '#include "llvm-c/Core.h"'))

    def test_private_headers_outside_lib_are_found(self):
        self.assertTrue(self.includes("tools/a/main.c", '#include "IR/B.h"'))
        self.assertTrue(self.includes(
            "include/hidet/A.h", '#include "Support/B.h"'))

    def intrinsics(self, where, text):
        rows = [("FMA", "fma"), ("TMA_LOAD_1D", "tma_load")]
        return list(check_intrinsics.faults_in(where, text, rows))

    def test_intrinsics_known_by_name_are_found(self):
        self.assertEqual([], self.intrinsics(
            "lib/IR/A.c", 'if (info->traits & HD_TRAIT_LOAD) say("no fma");'))
        self.assertEqual([], self.intrinsics(
            "lib/Schedule/Rules/Contract.c", "make(HD_INTRINSIC_FMA);"))
        self.assertEqual([], self.intrinsics(
            "lib/IR/A.c", "kind == HD_INTRINSIC_PURE"))
        for line in ("make(HD_INTRINSIC_FMA);", 'strcmp(name, "tma_load")',
                     'begins(name, "tma_")', 'strncmp(info->ptx, "ld", 2)',
                     "e->u.intrinsic == first"):
            self.assertEqual(1, len(self.intrinsics("lib/IR/A.c", line)), line)
        self.assertEqual(1, len(self.intrinsics(
            "lib/Schedule/Rules/Contract.c", "if (row->u.intrinsic == my)")))

    def test_a_missing_licence_is_found(self):
        self.assertEqual([], self.faults(check_sources, {"a.c": LICENCE}))
        self.assertTrue(self.faults(check_sources, {"a.c": "int a;\n"}))

    def test_a_hidden_module_is_found(self):
        text = {"test/Inputs/types.py": "# " + check_sources.LICENCE + "\n"}
        self.assertTrue(self.faults(check_sources, text))

    def test_a_home_folder_is_found(self):
        line = "// see /" + "home/me/notes\n"
        self.assertTrue(self.faults(check_sources, {"a.c": LICENCE + line}))

    def test_a_number_of_a_machine_is_found(self):
        line = "enum { LOAD_" + "CYCLES = 570 };\n"
        [fault] = self.faults(check_sources, {"lib/Schedule/A/a.c": LICENCE + line})
        self.assertIn("lib/Schedule/A/a.c:2: a property of a machine", fault)
        self.assertEqual([], self.faults(
            check_sources, {"lib/Sim/a.c": LICENCE + line}))

    def test_a_fit_elsewhere_is_found(self):
        line = "static const double SHARE = 0.5;\n"
        [fault] = self.faults(check_sources, {"lib/Schedule/A/APrice.c": LICENCE + line})
        self.assertIn("APrice.c:2: what a price was fitted by", fault)
        fits = {"lib/A/Fits.def": LICENCE + 'HD_FIT(share, 0.5,  "a.json", "of it")\n'}
        [fault] = self.faults(check_sources, fits)
        self.assertIn("Fits.def:2: no such results: a.json", fault)
        self.assertEqual([], self.faults(
            check_sources, {**fits, "bench/results/h200/a.json": "[]"}))

    def test_a_number_of_a_machine_in_a_head_is_found(self):
        def head(demands, rate="wgmma * 3 / 4"):
            return self.faults(check_sources, {check_sources.TEMPLATES + "/t.hir": LICENCE + (
                "template t implements product(z, m, n, k) {\n  requires %s\n"
                "  tile(128, 64, 64) rate(%s)\n}\n" % (demands, rate))})

        self.assertEqual([], head("native == 1, m > 64,\n           k * bits >= 1024"))
        for demands in ("m > 64, m * n / sms >= 1985", "m > 64,\n    m * wgmma > 2"):
            [fault] = head(demands)
            self.assertIn("t.hir:2: requires '", fault)
        [fault] = head("8 * (m + 64) * 128 <= 229376")
        self.assertIn("t.hir:2: requires room", fault)
        [fault] = head("m > 64", "2048 * 3 / 4")
        self.assertIn("t.hir:4: a rate", fault)

    def test_what_a_package_lacks_is_found(self):
        dynamic = (" 0x01 (NEEDED)  Shared library: [%s]\n"
                   " 0x1d (RUNPATH) Library runpath: [%s]\n")
        sections = "  [ 1] .text PROGBITS 0\n"
        self.assertEqual([], list(check_package.faults(
            dynamic % ("libc.so.6", "$ORIGIN/../lib:$ORIGIN"), sections)))
        self.assertEqual(
            ["needs libstdc++.so.6", "looks for libraries in /usr/lib",
             "is not stripped of .symtab"],
            list(check_package.faults(
                dynamic % ("libstdc++.so.6", "$ORIGIN:/usr/lib"),
                sections + "  [30] .symtab SYMTAB 0\n")))

    def test_a_long_file_is_found(self):
        long = LICENCE + "\n" * check_sources.MOST_LINES
        [fault] = self.faults(check_sources, {"lib/A/a.c": long})
        self.assertIn("lib/A/a.c: 451 lines, more than 450", fault)
        self.assertEqual([], self.faults(
            check_sources, {"lib/A/a.c": long[:-1]}))

    def test_a_long_template_is_found(self):
        text = LICENCE + "  // says why\n\n" + "x\n" * 150
        path = check_sources.TEMPLATES + "/t.hir"
        self.assertEqual([], self.faults(check_sources, {path: text}))
        self.assertEqual([], self.faults(
            check_sources, {"lib/IR/library/t.hir": text + "x\n"}))
        [fault] = self.faults(check_sources, {path: text + "x\n"})
        self.assertIn(": 151 lines without comments", fault)

    def test_a_room_names_its_files(self):
        files = {"lib/A/README.md": "`a.c` `b*.hir` `c.c`\n",
                 "lib/A/a.c": "", "lib/A/a.h": "", "lib/A/b1.hir": "",
                 "lib/A/c.c": ""}
        self.assertEqual([], self.faults(check_documents, files))
        [fault] = self.faults(check_documents, dict(files, **{
            "lib/A/d.h": ""}))
        self.assertEqual("lib/A/README.md: does not name d.h", fault)
        del files["lib/A/c.c"]
        [fault] = self.faults(check_documents, files)
        self.assertEqual("lib/A/README.md: no such file: c.c", fault)
        [fault] = self.faults(check_documents, {
            "lib/A/README.md": "`B/b.hir`\n", "lib/A/B/b.hir": ""})
        self.assertEqual("lib/A/B/README.md: there is none, for b.hir", fault)

    def test_a_room_that_is_not_drawn_is_found(self):
        files = {"docs/ARCHITECTURE.md": "`lib/A/`: `B/`, `a.c`\n",
                 "lib/A/README.md": "`a.c`\n", "lib/A/a.c": "",
                 "lib/A/B/README.md": "`b.c`\n", "lib/A/B/b.c": ""}
        self.assertEqual([], self.faults(check_documents, files))
        [fault] = self.faults(check_documents, dict(files, **{
            "lib/A/C/README.md": "`c.c`\n", "lib/A/C/c.c": ""}))
        self.assertEqual("docs/ARCHITECTURE.md: does not name C/", fault)
        files["docs/ARCHITECTURE.md"] += "`A/z.c`\n"
        [fault] = self.faults(check_documents, files)
        self.assertEqual("docs/ARCHITECTURE.md: no such file: A/z.c", fault)

    def test_a_dead_link_is_found(self):
        text = {"docs/b.md": "", "README.md": "[b](docs/b.md#there)\n"}
        self.assertEqual([], self.faults(check_documents, text))
        text["README.md"] += "[c](docs/c.md)\n"
        self.assertEqual(1, len(self.faults(check_documents, text)))

    def test_an_old_excerpt_is_found(self):
        text = {"examples/a.hir": "new\n",
                "README.md": "`examples/a.hir`:\n\n```\nold\n```\n"}
        self.assertEqual(1, len(self.faults(check_documents, text)))

    def test_symbols(self):
        faults = lambda *sets: list(check_symbols.faults(*map(set, sets)))
        self.assertEqual([], faults(["hidet_a"], ["hidet_a"]))
        self.assertTrue(faults(["hd_a"], []))
        self.assertTrue(faults(["hidet_a"], []))
        self.assertTrue(faults([], ["hidet_a"]))

    def test_a_function_that_nobody_gives_null_is_found(self):
        faults = lambda row, functions: list(check_nulls.faults(row, functions))
        row = '{"hidet_a", "!0.", a},'
        self.assertEqual([], faults(row, {"hidet_a": "**."}))
        self.assertTrue(faults("", {"hidet_a": "**."}))
        self.assertTrue(faults(row, {}))
        self.assertTrue(faults(row, {"hidet_a": "***"}))

    def test_two_types_of_one_name_are_found(self):
        one = "typedef struct hd_a {\n  int b;\n} hd_a_t;\n"
        files = {"lib/A.h": "typedef struct hd_a hd_a_t;\n",
                 "lib/A.c": "struct hd_a {\n  int b;\n};\n"}
        self.assertEqual([], self.faults(check_names, files))
        self.assertEqual([], self.faults(check_names, {"lib/A.h": one}))
        self.assertTrue(self.faults(
            check_names, {"lib/A.h": one, "unittests/B.h": one}))
        function = "typedef int (*hd_a_t)(int);\n"
        self.assertTrue(self.faults(
            check_names, {"lib/A.h": one, "fuzz/B.h": function}))

    def test_a_prefix_that_no_header_knows_is_found(self):
        self.assertTrue(self.faults(
            check_names, {"lib/A.c": "typedef HD_VEC(int) hd_list_t;\n"}))
        self.assertTrue(self.faults(
            check_names, {"lib/A.c": "struct hd_a {\n  int b;\n};\n"}))
        self.assertEqual([], self.faults(
            check_names, {"lib/A.c": "typedef HD_VEC(int) list_t;\n"}))

    def test_a_bare_verb_is_found(self):
        text = "static int\nfind(void) {\n  return 1;\n}\n"
        self.assertTrue(self.faults(check_names, {"lib/A.c": text}))
        text = "static int find_it(int (*find)(int)) {\n  return find(1);\n}\n"
        self.assertEqual([], self.faults(check_names, {"lib/A.c": text}))


if __name__ == "__main__":
    unittest.main()
