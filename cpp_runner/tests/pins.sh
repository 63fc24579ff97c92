#!/bin/sh
# pins.sh RUNNER BUNDLE: the bundle's samples are those in recomb2-*.jsonl, to the letter, by both kinds of step. A change
# of these files changes what users get for a seed, and must be said where a version's changes are.
set -eu
runner=$1 bundle=$2
here=$(cd "$(dirname "$0")" && pwd)
check() {
    expected=$1
    shift
    for step in own graph; do
        "$runner" "$bundle" --raw --step "$step" "$@" | sed 's/,"log_prob".*/}/' | diff - "$here/$expected" || {
            echo "other samples than in $expected, by --step $step" >&2
            exit 1
        }
    done
}
check recomb2-first.jsonl --seed 0 --draws 30
check recomb2-far.jsonl --seed 18446744073709551615 --start 1099511627776 --draws 10 --temperature 1,1
