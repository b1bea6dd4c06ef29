#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Everything that is to be shown on a GPU, within about eight minutes: numeric
# tests, compute-sanitizer, math, measurements. For a machine with python3,
# numpy and PyTorch and what scripts/package.sh packs, unpacked. Part devices
# takes random kernels from $KERNELS (BUILD/kernels.tar.gz), which
# scripts/kernel_files.sh makes. Part suite wants the Python package onnx in the
# version of test/requirements.txt. Part models exports models to $MODELS
# (/tmp/hidet-models) with PyTorch, torchvision and transformers, and runs them.
#
# usage: device.sh [BUILD] [part...]
#   BUILD: the unpacked folder, or a build folder (build-static). Parts: tests devices sanitizer products
#   hopper bert bandwidth math compile suite models; default: all but the last two.
#   Results: $OUT (bench/results).
set -u
cd "$(dirname "$0")/.."
build=${1:-build-static}
shift $(($# > 0 ? 1 : 0))
parts=${*:-tests devices products hopper bert bandwidth compile sanitizer math}
out=${OUT:-bench/results}
mkdir -p "$out"
export LD_LIBRARY_PATH=$PWD/$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export HIDET_CACHE_DIR=/tmp/hidet-cache
status=0

run() { # run NAME COMMAND...: keeps the log, says how it went
  local name=$1 start=$SECONDS code=0
  shift
  timeout 300 "$@" > "$out/$name.log" 2>&1 || code=$?
  echo "$name: exit $code, $((SECONDS - start)) s"
  [ $code = 0 ] || { status=1; tail -5 "$out/$name.log"; }
}

for part in $parts; do
  case $part in
    tests)
      run tests python3 examples/run.py --tools="$build/bin" --device=cuda \
        --sizes=all ;;
    devices)
      run devices python3 test/tools/devices.py --tools="$build/bin" \
        --seconds=270 --json="$out/devices.json" "${KERNELS:-$build/kernels.tar.gz}"
      tail -1 "$out/devices.log" ;;
    products)
      run products python3 bench/products.py --tools="$build/bin" \
        --json="$out/products.json"
      cat "$out/products.log" ;;
    hopper)
      run hopper python3 bench/hopper.py --tools="$build/bin" \
        --json="$out/hopper.json"
      cat "$out/hopper.log" ;;
    bert)
      run bert python3 bench/bert_layer.py --quick --tools="$build/bin" \
        --json="$out/bert_layer.json"
      cat "$out/bert.log" ;;
    bandwidth)
      run bandwidth python3 bench/bandwidth.py --tools="$build/bin" \
        --json="$out/bandwidth.json"
      cat "$out/bandwidth.log" ;;
    compile)
      [ -x "$build/bench/bench_compile" ] &&
        run compile "$build/bench/bench_compile" --json "$out/compile.json" \
          examples/*.hir && cat "$out/compile.log" ;;
    sanitizer)
      run sanitizer python3 bench/sanitizer.py --tools="$build/bin"
      cat "$out/sanitizer.log" ;;
    math)
      run math python3 test/Math/checksums.py --tools="$build/bin" \
        --device=cuda --expected=test/Math/checksums.json ;;
    suite)
      run suite python3 test/tools/onnx_suite.py --tools="$build/bin" \
        --device=cuda -j 8 --json="$out/suite.json"
      tail -60 "$out/suite.log" ;;
    models)
      models=${MODELS:-/tmp/hidet-models}
      names=$(python3 scripts/export_models.py --list | cut -d' ' -f1)
      # shellcheck disable=SC2086  # names are several words
      run export python3 scripts/export_models.py "$models" $names
      run export-dynamic python3 scripts/export_models.py --dynamic "$models" \
        resnet50 bert_base
      run models python3 test/tools/models.py --tools="$build/bin" \
        --device=cuda --json="$out/models.json" "$models"
      cat "$out/models.log" ;;
    *) echo "no such part: $part"; status=2 ;;
  esac
done
exit $status
