#!/bin/sh
# Builds the runner and the loops of training, and runs unit tests: build.sh FOLDER PYTHON, where PYTHON has ONNX Runtime;
# with a third word that target alone. Where there is no compiler or no headers, a line says so and nothing is built;
# what fails from there on is an error.
set -eu
folder=$1 python=$2 only=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
for program in c++ cmake; do
    command -v $program >/dev/null || {
        echo "C++ runner: no $program here, so it is not built and its tests are skipped"
        exit 0
    }
done
"$here/fetch_headers.sh" || {
    echo "C++ runner: its headers cannot be had, so it is not built and its tests are skipped"
    [ -z "${CI:-}" ] || exit 1
    exit 0
}
# The last file that CMake writes: where it failed, there is a cache without it, and nothing to build by.
[ -e "$folder/cmake_install.cmake" ] || cmake -S "$here" -B "$folder" -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON >/dev/null
targets=${only:-compgen-sample compgen-c compgen-score compgen-training unit_tests}
# shellcheck disable=SC2086  # several words
cmake --build "$folder" -j 2 --target $targets >"$folder/build.log" 2>&1 || {
    cat "$folder/build.log"
    exit 1
}
[ -z "$only" ] || exit 0
library=$("$python" -c 'from compgen.sampling.native import environment; print(environment()["COMPGEN_ONNXRUNTIME"])')
COMPGEN_ONNXRUNTIME=$library ctest --test-dir "$folder" --output-on-failure
