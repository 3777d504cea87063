"""Scores a checkpoint with the prompts of models/eval, so that a training run can be judged while it runs. The product's own evaluation, with
the exported file, is `npm run models:eval`.

  python3 -m words.score work/words.pt work/merges.json [--show]
"""
import argparse
import collections
import json
import random
import re
from pathlib import Path

from common import torchsetup  # noqa: F401

from words import bpe, corpus, tools
from words.network import from_checkpoint

EVALUATION = Path(__file__).parents[2] / "eval"


class Chat:
    def __init__(self, checkpoint, merges):
        self.network = from_checkpoint(checkpoint).eval()
        self.tokens = bpe.Tokens(json.loads(merges.read_text(encoding="utf8")))
        self.stop = {self.tokens.id["<|im_end|>"], self.tokens.id["<|endoftext|>"]}

    def reply(self, messages):
        """messages: [(role, text)]"""
        text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in messages) + "<|im_start|>assistant\n"
        return self.tokens.decode(self.network.greedy(self.tokens.encode(text), 120, self.stop))


def calls_in(text):
    """-> calls, or None if their syntax is wrong"""
    try:
        found = [json.loads(c) for c in re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text)]
    except ValueError:
        return None
    return found if len(found) == text.count("<tool_call>") else None


def score_tools(chat, show):
    evaluation = json.loads((EVALUATION / "tools.json").read_text(encoding="utf8"))
    defined = {t["name"]: json.dumps(t) for t in evaluation["tools"]}
    right, count = collections.Counter(), collections.Counter()
    for request in evaluation["requests"]:
        system = tools.system_text([defined[name] for name in request["tools"]])[len("system\n"):]
        reply = chat.reply([("system", system), ("user", request["message"])])
        calls, expected = calls_in(reply) or [], request["calls"]
        for what, good in [("tool", [c.get("name") for c in calls] == [c["name"] for c in expected]), ("call", calls == expected)]:
            right[request["group"], what] += good
            count[request["group"], what] += 1
        if show:
            print("good" if calls == expected else "BAD ", request["message"], "->", reply.replace("\n", " "))
    print({" ".join(k): f"{right[k]}/{count[k]}" for k in count})


def score_prompts(chat, show):
    prompts, good = json.loads((EVALUATION / "prompts.json").read_text(encoding="utf8")), 0
    for prompt in prompts:
        messages = [("system", prompt["system"])] if "system" in prompt else []
        for content in prompt["messages"]:
            messages.append(("user", content))
            messages.append(("assistant", chat.reply(messages)))
        flags = 0 if prompt.get("exactCase") else re.I
        found = [bool(re.search(prompt[key].replace("[^]", r"[\s\S]"), messages[-1][1], flags)) for key in ("rule", "never") if key in prompt]
        good += found in ([True], [True, False])
        if show and found not in ([True], [True, False]):
            print("BAD ", prompt["messages"][-1], "->", messages[-1][1])
    print(f"old prompts {good}/{len(prompts)}")


def score_chat(chat, show):
    """The 300 unseen prompts of the rubric; npm run models:eval judges more strictly."""
    evaluation = json.loads((EVALUATION / "chat.json").read_text(encoding="utf8"))
    right, count = collections.Counter(), collections.Counter()
    for prompt in evaluation["prompts"]:
        if "tool" in prompt or "schema" in prompt:
            continue
        messages = [("system", prompt["system"])] if "system" in prompt else []
        for said, want in prompt["turns"]:
            messages.append(("user", said))
            messages.append(("assistant", chat.reply(messages)))
            rule = want[1:] if want.startswith("/") else evaluation["rules"][want]
            good = bool(re.search(rule.replace("[^]", r"[\s\S]"), messages[-1][1], re.I))
            right[prompt["group"]] += good
            count[prompt["group"]] += 1
            if show:
                print("good" if good else "BAD ", said, "->", messages[-1][1].replace("\n", " / "))
    print("unseen prompts", sum(right.values()), {k: f"{right[k]}/{count[k]}" for k in count})


def score_exact(chat, show):
    """Answers like those of the training text, to questions made with another seed."""
    r, found = random.Random(7), {}
    for topic, count in [(corpus.sums, 60), (corpus.capitals, 30), (corpus.spelling, 20), (corpus.opposites, 20)]:
        good = 0
        for _ in range(count):
            question, answer, _ = topic(r, {})
            reply = chat.reply([("user", question)])
            good += reply == answer
            if show and reply != answer:
                print("BAD ", question, "->", reply)
        found[topic.__name__] = f"{good}/{count}"
    good = 0
    for _ in range(30):
        memory = {}
        messages = [("user", corpus.telling_name(r, memory)[0])]
        messages += [("assistant", chat.reply(messages)), ("user", corpus.asking_name(r, memory)[0])]
        good += memory["name"] in chat.reply(messages)
    print("exact answers", found | {"remembered names": f"{good}/30"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("merges", type=Path)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    chat = Chat(options.checkpoint, options.merges)
    score_prompts(chat, options.show)
    score_tools(chat, options.show)
    score_exact(chat, options.show)
    score_chat(chat, options.show)


if __name__ == "__main__":
    main()
