#!/bin/sh
# Builds the runner for 64-bit ARM on another machine, and runs there, by emulation, its unit tests, the literal samples of
# the bundle that ships, and its golden draws: arm64.sh FOLDER PYTHON, where PYTHON has ONNX Runtime. It takes ONNX Runtime
# for ARM from the index that pip uses. It needs root, and of Debian: g++-aarch64-linux-gnu, qemu-user. FOLDER/run is the
# runner, emulated.
set -eu
folder=$1 python=$2
here=$(cd "$(dirname "$0")" && pwd)
compiler=aarch64-linux-gnu-g++
for program in $compiler qemu-aarch64 unshare; do
    command -v $program >/dev/null || {
        echo "arm64.sh: no $program here" >&2
        exit 2
    }
done
"$here/fetch_headers.sh"
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu QEMU_CPU=neoverse-n1
cmake -S "$here" -B "$folder" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=$compiler \
    -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64 -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON
cmake --build "$folder" -j 2 --target compgen-sample compgen-c unit_tests
folder=$(cd "$folder" && pwd)

# ONNX Runtime asks Linux which processor it is on. The emulator leaves that question to the real one's answer.
for processor in 0 1; do
    printf 'processor\t: %s\nFeatures\t: fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm asimddp\n' $processor
    printf 'CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n'
done >"$folder/cpuinfo"
version=$("$python" -c 'import onnxruntime; print(onnxruntime.__version__)')
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$folder/wheel" \
    --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64 "onnxruntime==$version"
"$python" -m zipfile -e "$folder"/wheel/*.whl "$folder/wheel"
cat >"$folder/run" <<END
#!/bin/sh
export QEMU_LD_PREFIX=$QEMU_LD_PREFIX QEMU_CPU=$QEMU_CPU
export COMPGEN_ONNXRUNTIME=$(ls "$folder"/wheel/onnxruntime/capi/libonnxruntime.so.*)
exec unshare -m sh -c 'mount --bind $folder/cpuinfo /proc/cpuinfo && exec qemu-aarch64 $folder/compgen-sample "\$@"' run "\$@"
END
chmod +x "$folder/run"

ctest --test-dir "$folder" --output-on-failure -R unit_tests
"$here/tests/pins.sh" "$folder/run" "$here/../exported/recomb2"
"$folder/run" "$here/../exported/recomb2" --verify
