// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions, as host code runs them, against Support/Float.h and C's own
// arithmetic: every code of the narrow formats, and values around every tie.
#include "CodeGenTest.h"
#include "Support/Float.h"

#include <math.h>

enum { N = 1 << 14 };

static const char *const names[] = {
    "f4e2m1", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0",
    "f16",    "bf16",   "tf32",   "f32",        "f64"};
static const unsigned bits[] = {4, 8, 8, 8, 8, 8, 16, 16, 32, 32, 64};

static uint64_t random_bits(void) {
  static uint64_t s = 88172645463325252u;
  s ^= s << 13, s ^= s >> 7, s ^= s << 17;
  return s;
}

// Element by element, or in vectors: elements of less than a byte are not
// stored alone.
static void convert_by(int lanes, const char *from, const char *to, void *in,
                       void *out) {
  char text[512], access[32] = "i", vector[16] = "";
  if (lanes > 1) {
    snprintf(access, sizeof access, "i * %d +: %d", lanes, lanes);
    snprintf(vector, sizeof vector, "x%d", lanes);
  }
  snprintf(text, sizeof text,
           "kernel cast(in a: %s[%d], out c: %s[%d]) grid(%d) block(64) {\n"
           "  let i = block * 64 + thread\n"
           "  c[%s] = %s%s(a[%s])\n"
           "}\n",
           from, N, to, N, N / 64 / lanes, access, to, vector, access);
  program_t p;
  program_init(&p, text);
  void *args[] = {&in, &out};
  program_run(&p, args, N / 64 / lanes, 1);
  program_fini(&p);
}

static void convert(const char *from, const char *to, void *in, void *out) {
  static uint8_t alone[8 * N];
  hd_type_t a, b;
  assert_true(hd_type_parse(from, &a));
  assert_true(hd_type_parse(to, &b));
  unsigned size = hd_type_bits(b);
  convert_by(hd_type_bits(a) == 2 || size == 2 ? 4 : 2, from, to, in, out);
  if (size < 8)
    return;
  convert_by(1, from, to, in, alone);
  assert_memory_equal(out, alone, N * (size / 8));
}

// The value of element i of an array of a format, and its bits.
static uint64_t element(const void *data, int format, int i) {
  const uint8_t *bytes = data;
  uint64_t value = 0;
  if (bits[format] == 4)
    return bytes[i / 2] >> (i % 2 * 4) & 15;
  memcpy(&value, bytes + (size_t)i * (bits[format] / 8), bits[format] / 8);
  return value;
}

// A double near which conversions to a format are hard: a value of the format,
// the middle between two, or a little beside; or any bits.
static double hard_value(int format) {
  uint64_t r = random_bits();
  unsigned width = bits[format];
  double a = hd_float_decode((hd_float_format_t)format, r);
  double b = hd_float_decode((hd_float_format_t)format, r + 1);
  if (width == 32)
    b = hd_float_decode((hd_float_format_t)format, r + (1 << 13));
  switch (random_bits() % 6) {
  case 0:
    return a;
  case 1:
    return (a + b) / 2;
  case 2:
    return nextafter((a + b) / 2, a);
  case 3:
    return nextafter((a + b) / 2, b);
  case 4:
    return a * (double)((int)(random_bits() % 5) - 2);
  default: {
    double any;
    r = random_bits();
    memcpy(&any, &r, 8);
    return any;
  }
  }
}

static void expect(int format, double value, uint64_t got, const char *from) {
  uint64_t want = hd_float_encode((hd_float_format_t)format, value);
  double w = hd_float_decode((hd_float_format_t)format, want);
  double g = hd_float_decode((hd_float_format_t)format, got);
  if (isnan(w) ? isnan(g) : want == got)
    return;
  fail_msg("%s(%s %a): %llx, and %llx is right", names[format], from, value,
           (unsigned long long)got, (unsigned long long)want);
}

static void narrows_f64_and_f32(void **state) {
  (void)state;
  static double f64[N];
  static float f32[N];
  static uint64_t out[N];
  for (int format = 0; format < HD_FLOAT_F64; format++) {
    for (int i = 0; i < N; i++) {
      f64[i] = hard_value(format);
      f32[i] = (float)hard_value(format);
    }
    convert("f64", names[format], f64, out);
    for (int i = 0; i < N; i++)
      expect(format, f64[i], element(out, format, i), "f64");
    if (format == HD_FLOAT_F32)
      continue;
    convert("f32", names[format], f32, out);
    for (int i = 0; i < N; i++)
      expect(format, f32[i], element(out, format, i), "f32");
  }
}

static void widens_every_code(void **state) {
  (void)state;
  static uint64_t in[N];
  static float f32[N];
  static double f64[N];
  for (int format = 0; format < HD_FLOAT_F32; format++) {
    for (int part = 0; part < 4; part++) {
      for (int i = 0; i < N; i++) {
        unsigned code = (unsigned)(part * N + i);
        if (bits[format] == 16)
          ((uint16_t *)in)[i] = (uint16_t)code;
        else if (bits[format] == 32)
          ((uint32_t *)in)[i] = (uint32_t)random_bits() & 0xffffe000;
        else
          ((uint8_t *)in)[i] = (uint8_t)code;
      }
      convert(names[format], "f32", in, f32);
      convert(names[format], "f64", in, f64);
      for (int i = 0; i < N; i++) {
        double want =
            hd_float_decode((hd_float_format_t)format, element(in, format, i));
        assert_true(isnan(want) ? isnan(f32[i]) : want == (double)f32[i]);
        assert_true(isnan(want) ? isnan(f64[i]) : want == f64[i]);
      }
      if (bits[format] < 16)
        break;
    }
  }
}

// Integers are exact in long double, whose rounding to the format is done by
// hand: to odd, then as a double.
static double as_double_odd(int64_t value) {
  double d = (double)value;
  if ((long double)d == (long double)value)
    return d;
  double cut =
      fabsl((long double)d) > fabsl((long double)value) ? nextafter(d, 0) : d;
  uint64_t u;
  memcpy(&u, &cut, 8);
  u |= 1;
  memcpy(&cut, &u, 8);
  return cut;
}

static void rounds_integers_once(void **state) {
  (void)state;
  static int64_t in[N];
  static uint64_t out[N];
  for (int i = 0; i < N; i++) {
    in[i] = (int64_t)random_bits() >> random_bits() % 63;
    if (i % 4 == 0) // Just beside a tie of bf16.
      in[i] =
          (int64_t)((0x81 + random_bits() % 64 * 2) << (random_bits() % 50)) +
          (int64_t)(random_bits() % 3) - 1;
  }
  for (int format = 0; format < HD_FLOAT_F32; format++) {
    convert("i64", names[format], in, out);
    for (int i = 0; i < N; i++)
      expect(format, as_double_odd(in[i]), element(out, format, i), "i64");
  }
}

typedef struct range {
  const char *name;
  unsigned bytes;
  double low, high; // Both fit.
} range_t;

static void saturates_to_integers(void **state) {
  (void)state;
  static const range_t ranges[] = {
      {"i8", 1, -128, 127},
      {"u8", 1, 0, 255},
      {"i16", 2, -32768, 32767},
      {"u16", 2, 0, 65535},
      {"i32", 4, -2147483648.0, 2147483647},
      {"u32", 4, 0, 4294967295.0},
  };
  static double in[N];
  static uint8_t out[8 * N];
  for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
    const range_t *range = &ranges[r];
    for (int i = 0; i < N; i++)
      in[i] = i == 0   ? NAN
              : i == 1 ? INFINITY
              : i == 2 ? -INFINITY
              : i % 2  ? range->high + (double)(i % 64) / 16 - 2
                       : ldexp((double)(int64_t)random_bits(), -(i % 80));
    convert("f64", range->name, in, out);
    for (int i = 0; i < N; i++) {
      double want = isnan(in[i])           ? 0
                    : in[i] <= range->low  ? range->low
                    : in[i] >= range->high ? range->high
                                           : trunc(in[i]);
      int64_t got = 0;
      memcpy(&got, out + (size_t)i * range->bytes, range->bytes);
      if (range->low < 0) {
        unsigned unused = 64 - range->bytes * 8;
        got = (int64_t)((uint64_t)got << unused) >> unused;
      }
      assert_true((double)got == want);
    }
  }
}

static void packs_small_integers(void **state) {
  (void)state;
  static int32_t in[N], back[N];
  static uint8_t packed[N];
  for (int i = 0; i < N; i++)
    in[i] = (int32_t)random_bits();
  convert("i32", "i4", in, packed);
  convert("i4", "i32", packed, back);
  for (int i = 0; i < N; i++) {
    int low = in[i] & 15;
    assert_int_equal(packed[i / 2] >> (i % 2 * 4) & 15, low);
    assert_int_equal(back[i], low >= 8 ? low - 16 : low);
  }
  convert("i32", "u2", in, packed);
  convert("u2", "i32", packed, back);
  for (int i = 0; i < N; i++)
    assert_int_equal(back[i], in[i] & 3);
}

HD_UNIT_TESTS(cmocka_unit_test(narrows_f64_and_f32),
              cmocka_unit_test(widens_every_code),
              cmocka_unit_test(rounds_integers_once),
              cmocka_unit_test(saturates_to_integers),
              cmocka_unit_test(packs_small_integers))
