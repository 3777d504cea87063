#!/bin/sh
# Training speech of the built-in voices, from a node that runs: ownvoices.sh BASE KEY FOLDER. 300 WAV files of 24 kHz.
set -e
mkdir -p "$3"
/usr/bin/python3 - <<'PY' > "$3/sentences.txt"
from common.sentences import Sentences
sentences = Sentences(77, "training")
for _ in range(300):
    print(sentences.draw().replace('"', ""))
PY
set -- "$1" "$2" "$3" af_bella af_sarah am_adam am_michael bf_emma bf_isabella bm_george bm_lewis
n=0
while read -r sentence; do
  n=$((n + 1))
  voice=$(eval echo "\$$((4 + n % 8))")
  curl -sf --retry 5 --retry-all-errors --retry-delay 1 "$1/v1/audio/speech" -H "Authorization: Bearer $2" -H "Content-Type: application/json" \
    -d "{\"model\": \"tts-82m\", \"voice\": \"$voice\", \"input\": \"$sentence\", \"response_format\": \"pcm\", \"speed\": 1.$((n % 3))}" |
    sox -t raw -r 24000 -e signed -b 16 -c 1 - "$3/$n.wav"
done < "$3/sentences.txt"
