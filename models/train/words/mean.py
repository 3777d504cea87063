"""The mean of checkpoints whose runs began with the same weights. It is better than each of them, as if the rate had fallen more slowly.

  python3 -m words.mean work/words.pt work/last.pt --out work/mean.pt
"""
import argparse

from common import torchsetup  # noqa: F401

from common import checkpoint


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="+")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    states = [checkpoint.load(path)["network"] for path in options.checkpoints]
    checkpoint.save(options.out, network={name: sum(state[name] for state in states) / len(states) for name in states[0]})


if __name__ == "__main__":
    main()
