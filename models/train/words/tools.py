"""Training text of the chat model about tools: definitions in the system message, requests, calls, results and what the model says then.

The tables are in tools.json. Names, descriptions, keys and types of a tool vary, so that the model has to read the definitions; many values are
invented, so that it has to copy them. Some requests fit none of the tools, and some are ordinary questions.

  python3 -m words.tools --count 5 --seed 3
"""
import json
import re
from pathlib import Path

from words import corpus, everyday
from words.corpus import ASKED_WEIGHT, DAYS, END, K, NUMBERS, START, STOP, capitalised, name_of

T = json.loads((Path(__file__).parent / "tools.json").read_text(encoding="utf8"))
V = T["values"]
READ_WEIGHT = 0.0       # of definitions and results, which are not to be produced
DEVICES = 0.08          # of the tools are made from a verb and a noun
USUAL_NAMES = 0.25      # of the tools have the first name in their list
ANSWERED = 0.65         # of the calls have a result
ALIKE = 0.4             # of the further tools take what another one takes, e.g. a city, so that the slots alone do not tell them apart
NO_TOOL = "I am sorry, I have no tool for that."
FAILED = "I am sorry, that did not work."
DONE = ["ok", "done", '{"ok": true}', '{"status": "ok"}', '{"success": true}', '{"result": "done"}']
ERRORS = ['{"error": "not available"}', '{"ok": false}', '{"error": "failed"}', "error"]
# Tools that could be taken for each other: a request for one of them is never the example of a request that fits no tool.
GROUPS = [{"room", "state", "level", "color", "degrees"}, {"minutes", "amount", "time"}, {"music", "action", "direction"}, {"event", "day"}]
ASKED_ANYWAY = {"expression", "text", "item"}     # slots of tools without which the model may answer itself, or claims nothing


def _number(r, value):
    """-> as the user says it, the number"""
    return (NUMBERS[value] if value <= 20 and r.random() < 0.2 else str(value)), value


def _clock_time(r):
    hour, minute = r.randint(1, 12), r.choice([0, 5, 10, 15, 20, 30, 40, 45, 50, 55, r.randint(0, 59)])
    return r.choice([
        f"{hour} {r.choice(['am', 'pm'])}", f"{r.randint(0, 23)}:{minute:02}", f"{hour}:{minute:02} {r.choice(['am', 'pm'])}",
        f"{hour} o'clock", "noon" if r.random() < 0.2 else f"{hour}:{minute:02}",
    ])


def _expression(r):
    a, b = r.randint(0, r.choice([20, 99, 999])), r.randint(0, r.choice([20, 99, 999]))
    return f"{a} {r.choice(['plus', 'minus', 'times', 'divided by', '+', '-', '*', '/'])} {b}"


def _invented(r, table, share=0.35):
    return name_of(r, 1) if r.random() < share else r.choice(table)


_ASKED = (Path(__file__).parents[2] / "eval/tools.json").read_text(encoding="utf8").lower()
_NOUNS = [noun for noun in corpus.spoken_nouns() if noun not in _ASKED]


def _word(r):
    """A noun that is not in the evaluation, or a word that does not exist: it must be copied, not known."""
    return r.choice(_NOUNS) if r.random() < 0.5 else everyday.made(r)


def _or_word(r, table, share=0.4):
    return _word(r) if r.random() < share else r.choice(table)


def _with_descriptor(r, table, share=0.2):
    return (r.choice(V["descriptors"]) + " " if r.random() < share else "") + _or_word(r, table)


_CITIES = V["cities"] + list(K["capitals"].values())
_TEXTS = {
    "city": lambda r: _invented(r, _CITIES), "room": lambda r: _with_descriptor(r, V["rooms"]),
    "person": lambda r: name_of(r, 0.4) if r.random() < 0.8 else r.choice(V["people"]),
    "music": lambda r: r.choice([lambda: r.choice(V["genres"]), lambda: r.choice(V["artists"]), lambda: name_of(r, 1), lambda: _word(r)])(),
    "task": lambda r: r.choice(V["others"]) if r.random() < 0.15 else f"{r.choice(V['verbs'])} {r.choice(V['objects'] + ['the ' + r.choice(K['nouns'])] * 9 + [r.choice(['the ', 'my ', 'a ', 'some ']) + _word(r)] * 20)}",
    "message": lambda r: r.choice(V["messages"]) if r.random() < 0.6 else r.choice([
        f"I {r.choice(['want', 'have', 'lost', 'found', 'need', 'see'])} the {_word(r)}", f"I am {r.choice(['at', 'in', 'near', 'with', 'behind', 'lost in', 'waiting at'])} {r.choice(['the ', 'my ', 'your ', ''])}{_word(r)}",
        f"the {_word(r)} is {r.choice(['here', 'ready', 'broken', 'late', 'open', 'cold', 'in the ' + _word(r)])}", f"{_word(r)} {_word(r)} {_word(r)}", f"{_word(r)} at {r.randint(1, 12)}",
        f"we {r.choice(['need', 'have', 'bought', 'sold', 'like'])} {r.choice(['more ', 'no ', 'the ', ''])}{_word(r)}",
    ]),
    "place": lambda r: r.choice([r.choice(V["places"]), name_of(r, 1), "the " + _word(r), "the " + _word(r), r.choice(_CITIES)]),
    "topic": lambda r: r.choice(V["topics"]) if r.random() < 0.4 else r.choice([f"{r.choice(V['descriptors'])} {r.choice(K['nouns'])}s", f"{_word(r)} {_word(r)}", f"{_word(r)} {_word(r)}s", _word(r), f"{_word(r)} in {r.choice(_CITIES)}"]),
    "language": lambda r: r.choice(V["languages"]), "phrase": lambda r: r.choice(V["phrases"] if r.random() < 0.3 else K["nouns"]) if r.random() < 0.5 else _word(r),
    "event": lambda r: _or_word(r, V["events"], 0.2), "item": lambda r: _or_word(r, V["items"]),
    "company": lambda r: _invented(r, V["companies"]), "door": lambda r: _with_descriptor(r, V["doors"]),
    "food": lambda r: r.choice(V["foods"]), "color": lambda r: r.choice(V["colors"]), "clockTime": _clock_time, "expression": _expression,
    "currency": lambda r: r.choice(["euros", "dollars", "pounds"]), "otherCurrency": lambda r: r.choice(["yen", "francs", "rupees"]),
}
_CHOICES = {
    "switch": ["on", "off"], "upDown": ["up", "down"], "lock": ["lock", "unlock"], "unit": ["celsius", "fahrenheit"],
    "timeUnit": ["seconds", "minutes", "hours"], "player": ["pause", "stop", "skip", "resume"], "mode": ["car", "bike", "bus", "train"],
}
_NUMBERS = {
    "minutes": lambda r: r.choice([r.randint(1, 20), r.randint(1, 99)]), "number": lambda r: r.randint(2, 99),
    "percent": lambda r: r.choice([r.randint(0, 100), 10 * r.randint(0, 10)]), "degrees": lambda r: r.randint(5, 30),
}


def choices_of(kind):
    return kind if isinstance(kind, list) else _CHOICES.get(kind)


def chosen(kind, said, schema):
    return said == choices_of(kind)[0] if schema["type"] == "boolean" else said


def value_of(r, kind, schema):
    """-> (as the user says it, JSON value)"""
    if choices_of(kind):
        said = r.choice(choices_of(kind))
        return said, chosen(kind, said, schema)
    if kind in _NUMBERS:
        return _number(r, _NUMBERS[kind](r))
    if kind == "day":
        day = r.choice(["today", "tomorrow"] + DAYS)
        return ("on " + day if day in DAYS else day), day
    text = _TEXTS[kind](r)
    return text, text


def schema_of(r, kind, key):
    choices = choices_of(kind)
    if choices:
        if kind in ("switch", "lock") and (key in ("on", "locked") or key == "power" and r.random() < 0.5):
            return {"type": "boolean"}
        return {"type": "string", "enum": choices if r.random() < 0.7 else choices[::-1]} if r.random() < 0.85 else {"type": "string"}
    if kind in _NUMBERS:
        return {"type": r.choice(["integer", "integer", "number"])}
    return {"type": "string"}


class Tool:
    """A tool as a client defines it, and the requests that it serves."""

    def __init__(self, r, domain):
        self.domain, name = domain, domain["names"][0] if r.random() < USUAL_NAMES else r.choice(domain["names"])
        if r.random() < 0.1:
            name = re.sub(r"_(\w)", lambda m: m.group(1).upper(), name)
        self.name, self.slots, properties, required = name, {}, {}, []
        for slot, about in domain["slots"].items():
            key = r.choice(about["keys"])
            if about.get("optional") and r.random() < 0.6 or key in properties:
                continue
            properties[key] = schema_of(r, about["kind"], key)
            self.slots[slot] = (key, about["kind"], properties[key])
            if not about.get("optional"):
                required.append(key)
        if r.random() < 0.15:
            for key, schema in properties.items():
                schema["description"] = r.choice([f"The {key}.", capitalised(key) + ".", f"{capitalised(key)} to use.", f"Name of the {key}."])
        parameters = {"type": "object", "properties": properties}
        if required or r.random() < 0.5:
            parameters["required"] = required
        if r.random() < 0.2:
            parameters["additionalProperties"] = False
        about = "" if r.random() < 0.06 else r.choice(domain["about"])
        self.definition = json.dumps({"name": name, "description": about, "parameters": parameters})
        fixed = {s for s, a in domain["slots"].items() if not a.get("optional") and s in self.slots}
        self.requests = [(q, {}) for q in domain["requests"] if fixed <= set(re.findall(r"{(\w+)}", q)) <= set(self.slots)]
        choice_slot = next((s for s, (_, kind, _) in self.slots.items() if choices_of(kind)), None)
        self.requests += [(q, {choice_slot: said}) for q, said in domain.get("wordings", []) if choice_slot] * 2

    def ask(self, r):
        """-> request, what the user said of each slot, arguments"""
        template, implied = r.choice(self.requests)
        lower, said, arguments = r.random() < 0.2, {}, {}
        for slot, (key, kind, schema) in self.slots.items():
            if "{" + slot + "}" in template:
                said[slot], value = value_of(r, kind, schema)
            elif slot in implied:
                said[slot] = implied[slot]
                value = chosen(kind, implied[slot], schema)
            else:
                continue
            if lower and isinstance(value, str):
                said[slot], value = said[slot].lower(), value.lower()
            arguments[key] = value
        text = _filled(template, said).replace("for on ", "for ")
        if not template.startswith("{"):
            text = r.choice(["Please ", "Hey, ", "Okay, ", "Now ", "And "]) + text if r.random() < 0.08 and not text.startswith("I ") else text
            text = capitalised(text) if r.random() < 0.7 else text
        text = text.lower() if lower else text
        return text.rstrip(".?") if r.random() < 0.3 else text, said, arguments

    def result(self, r, said):
        """-> result, sentence"""
        if r.random() < 0.06:
            return r.choice(ERRORS), FAILED
        more = {
            "clock": f"{r.randint(0, 23)}:{r.randint(0, 59):02}", "degrees": str(r.randint(-10, 35)), "number": str(r.randint(2, 999)),
            "sky": r.choice("sunny cloudy rainy windy foggy clear".split()), "invented": name_of(r, 1).lower(), "event": r.choice(V["events"]),
        }
        values = {**more, **said}
        return _filled(r.choice(self.domain.get("results", DONE)), values), capitalised(_filled(r.choice(self.domain["says"]), values))


def _filled(template, values):
    return re.sub(r"{(\w+)}", lambda m: str(values.get(m.group(1), m.group(0))), template)


def device(r):
    """A domain of one verb and one noun, or of a noun and several verbs."""
    noun, room = r.choice(V["deviceNouns"]), r.choice(["room", "location", "place"])
    if r.random() < 0.3:
        kinds = r.sample(V["deviceVerbs"], r.randint(2, 3))
        return {
            "names": [noun, "control_" + noun, noun + "_control"], "about": [f"Control the {noun}.", f"The {noun}."], "noun": noun,
            "slots": {"verb": {"keys": ["action", "command"], "kind": kinds}},
            "requests": [f"{{verb}} the {noun}.", f"please {{verb}} the {noun}.", f"can you {{verb}} the {noun}?"], "says": ["Done."],
        }
    verb = r.choice(V["deviceVerbs"])
    slots, ways = r.choice([
        ({}, ["{0}.", "please {0}.", "can you {0}?", "I want you to {0}.", "{0} now.", "could you {0}?"]),
        ({"minutes": {"keys": ["minutes", "duration"], "kind": "minutes"}}, ["{0} for {{minutes}} minutes.", "{0} in {{minutes}} minutes."]),
        ({"room": {"keys": [room], "kind": "room"}}, ["{0} in the {{room}}.", "please {0} in the {{room}}."]),
        ({"name": {"keys": ["name", "person"], "kind": "person"}}, ["{0} for {{name}}.", "{0} of {{name}}."]),
        ({"number": {"keys": ["number", "id"], "kind": "number"}}, [f"{verb} {noun} {{{{number}}}}.", f"{verb} {noun} number {{{{number}}}}."]),
    ])
    act = f"{verb} the {noun}"
    return {
        "names": [f"{verb}_{noun}", f"{verb}_the_{noun}", f"{noun}_{verb}"], "about": [capitalised(act) + ".", f"Can {act}."], "noun": noun, "slots": slots,
        "requests": [way.format(act) for way in ways], "says": ["Done.", f"All right, the {noun}."],
    }


def _domain(r):
    if r.random() >= DEVICES:
        return r.choices(T["domains"], [d.get("share", 3) for d in T["domains"]])[0]
    return device(r)


def _alike(a, b):
    slots = set(a["slots"]) | {"time"} if "clock" in a["names"] else set(a["slots"])
    return a is b or a.get("noun", 0) == b.get("noun", 1) or bool(set(a["names"]) & set(b["names"])) or any(
        slots & group and set(b["slots"]) & group for group in GROUPS)


def _domain_like(r, domains):
    """A domain that shares a slot with one of `domains`, if there is one."""
    slots = {slot for d in domains for slot in d["slots"]}
    alike = [d for d in T["domains"] if slots & set(d["slots"]) and not any(d is o for o in domains)]
    return r.choice(alike) if alike else _domain(r)


def offered(r):
    domains = []
    for _ in range(r.choice([1, 2, 2, 2, 3, 3, 4])):
        domain = _domain_like(r, domains) if domains and r.random() < ALIKE else _domain(r)
        if not any(domain is d or set(domain["names"]) & set(d["names"]) for d in domains):
            domains.append(domain)
    return [Tool(r, domain) for domain in domains]


def written(calls):
    return "\n".join(f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>" for name, arguments in calls)


def system_text(definitions, system=None):
    return "".join(["system\n", system + "\n" if system else "", "<tools>\n", *(d + "\n" for d in definitions), "</tools>"])


def _ordinary(r, tools, memory):
    """An ordinary question that no tool is for. Nothing that a tool could do is refused, so there are no refusals."""
    while True:
        topic = r.choices(list(corpus.TOPICS), list(corpus.TOPICS.values()))[0]
        if topic in (corpus.household, corpus.refusals, corpus.spoken) or topic in (corpus.stories, corpus.unknown, corpus.everyday_talk) and r.random() < 0.6:
            continue
        if topic in (corpus.sums, corpus.remembered, corpus.repeating) and any(set(t.slots) & {"expression", "place", "query", "text"} for t in tools):
            continue
        return corpus.turn(r, memory, {topic: 1})[:2]


def _turn(r, tools, memory):
    """-> request, calls, (result, sentence) of each call, or the plain answer"""
    kind = r.random()
    if kind < 0.09:
        first, second = r.choice(tools), r.choice(tools)
        (text, said, arguments), (text2, said2, arguments2) = first.ask(r), second.ask(r)
        both = text.rstrip(".?!") + r.choice([" and ", " and ", ", and then ", " and also "]) + text2[:1].lower() + text2[1:]
        if arguments != arguments2 and not (text2[:2] == "I " or text2[:1].isupper() and text2.split(" ")[0].rstrip(",") in said2.values()):
            return both, [(first.name, arguments), (second.name, arguments2)], [first.result(r, said), second.result(r, said2)], None
    if kind < 0.22:
        other = _domain(r)
        if not set(other["slots"]) & ASKED_ANYWAY and not any(_alike(other, t.domain) for t in tools):
            return Tool(r, other).ask(r)[0], [], [], NO_TOOL
    if kind < 0.34:
        question, answer = _ordinary(r, tools, memory)
        return corpus.casual(r, question), [], [], answer
    if kind < 0.37:
        bare = next((t for t in tools if "bare" in t.domain), None)
        if bare:
            return corpus.casual(r, capitalised(r.choice(bare.domain["bare"]))), [], [], bare.domain["ask"]
    tool = r.choice(tools)
    text, said, arguments = tool.ask(r)
    return text, [(tool.name, arguments)], [tool.result(r, said)], None


def document(r, turns=None):
    """As corpus.document."""
    tools, memory = offered(r), {}
    system = r.choice(K["systems"]) if r.random() < 0.35 else None
    out = [(START, 1.0), (system_text([t.definition for t in tools], system), READ_WEIGHT), (STOP, READ_WEIGHT), ("\n", READ_WEIGHT)]

    def asked(text, weight):
        return [(START, weight), ("user\n" + text, weight), (STOP, weight), ("\n", weight), (START, weight), ("assistant\n", weight)]

    count = turns or r.choice([1, 1, 2, 3, 4, 5, 6])
    for i in range(count):
        text, calls, results, answer = _turn(r, tools, memory)
        while not corpus.unseen(text):
            text, calls, results, answer = _turn(r, tools, memory)
        out += asked(text, ASKED_WEIGHT / 2) + [(written(calls) if calls else answer, 1.0), (STOP, 1.0), ("\n", ASKED_WEIGHT)]
        if calls and r.random() < ANSWERED:
            responses = "\n".join(f"<tool_response>\n{result}\n</tool_response>" for result, _ in results)
            out += asked(responses, READ_WEIGHT) + [(" ".join(sentence for _, sentence in results), 1.0), (STOP, 1.0), ("\n", ASKED_WEIGHT)]
    return out + [(END, 1.0)]


if __name__ == "__main__":
    corpus.show(document, __doc__)
