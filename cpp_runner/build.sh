#!/bin/sh
# Builds the runner and runs its unit tests: build.sh FOLDER PYTHON, where PYTHON has ONNX Runtime. Where there is no
# compiler or no headers, a line says so and nothing is built; what fails from there on is an error.
set -eu
folder=$1 python=$2
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
[ -e "$folder/CMakeCache.txt" ] || cmake -S "$here" -B "$folder" -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON >/dev/null
cmake --build "$folder" -j 2 --target compgen-sample compgen-c compgen-score unit_tests >"$folder/build.log" 2>&1 || {
    cat "$folder/build.log"
    exit 1
}
library=$("$python" -c 'from compgen.sampling.native import environment; print(environment()["COMPGEN_ONNXRUNTIME"])')
COMPGEN_ONNXRUNTIME=$library ctest --test-dir "$folder" --output-on-failure
