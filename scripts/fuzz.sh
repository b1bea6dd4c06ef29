#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs a fuzz target on one core for a while and folds what is new and small
# into fuzz/corpus/. What it finds (crashes, leaks, inputs over a second) lies in
# build-fuzz/found/ until it is mended, and the exit code is 1 meanwhile.
# usage: fuzz.sh NAME [SECONDS]     (needs setup.sh --all; NAME: that of a file in
# fuzz/)
set -euo pipefail
cd "$(dirname "$0")/.."

name=$1
seconds=${2:-600}
[ -f build-fuzz/build.ninja ] || cmake --preset fuzz
cmake --build build-fuzz --target "fuzz_$name" fuzz_dictionary
found=build-fuzz/found/$name
corpus=fuzz/corpus/$name
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$found" "$work/seeds" "$work/all" "$work/small" "$work/kept"

# Wherever it runs, what it finds goes to one place.
target() {
  build-fuzz/fuzz/fuzz_"$name" -artifact_prefix="$found/" "$@"
}

# Seeds. Of text: every module of the examples, the tests and the library, those
# of a split file each for itself. Of models and tensors: small ones of the onnx
# package's tests.
dictionary=(-dict=build-fuzz/fuzz/hir.dict)
case $name in onnx | tensor | npy) dictionary=() ;; esac
suite=$(.venv/bin/python3 -c 'import onnx; print(onnx.__path__[0])')/backend/test
case $name in
  onnx) find "$suite" -name model.onnx -size -5 ;;
  tensor) find "$suite" -name '*.pb' -size -2 ;;
  npy) ;;
  *)
    find examples test lib -name '*.hir' | while read -r file; do
      csplit -s -z -f "$work/seeds/$(echo "$file" | tr / _)-" "$file" \
        '/^\/\/ -----/' '{*}'
    done
    ;;
esac | while read -r file; do
  cp "$file" "$work/seeds/$(md5sum < "$file" | cut -c-32)"
done

target "${dictionary[@]}" -max_total_time="$seconds" \
  -max_len=4096 -timeout=60 -report_slow_units=1 -rss_limit_mb=3072 \
  -print_final_stats=1 -verbosity=1 \
  "$work/all" "$corpus" "$work/seeds" > "$found/log" 2>&1 || true
grep -E '^(#[0-9]+.DONE|stat::)|Slowest unit|SUMMARY|ERROR:' "$found/log" || true

# Of what it made, the inputs of up to 2 KiB that reach edges which neither the
# seeds nor the others reach; the tests replay the seeds anyway.
find "$work/all" "$corpus" -type f -size -2049c -exec cp -t "$work/small" {} +
find "$work/seeds" -type f -exec cp -t "$work/kept" {} +
target -set_cover_merge=1 -use_counters=0 -max_len=65536 -timeout=60 \
  "$work/kept" "$work/small" > "$found/merge.log" 2>&1
rm -f "$corpus"/*
for file in "$work/kept"/*; do
  [ -f "$work/seeds/$(basename "$file")" ] || cp "$file" "$corpus"
done
echo "$corpus: $(find "$corpus" -type f | wc -l) files," \
  "$(cat "$corpus"/* | wc -c) bytes"

# On a busy machine many inputs are slow; those that pass, and in less than a
# second alone, are no findings, or are mended.
status=0
TIMEFORMAT=%U
for file in "$found"/{crash,leak,oom,timeout,slow-unit}-*; do
  [ -f "$file" ] || continue
  used=$({ time target "$file" > "$work/log" 2>&1; } 2>&1) || used=failed
  if [ "$used" != failed ] && [ "${used%.*}" -lt 1 ]; then
    rm "$file"
  else
    echo "$file: $used ($(grep -m 1 -E 'SUMMARY|ERROR' "$work/log" || true))"
    status=1
  fi
done
exit $status
