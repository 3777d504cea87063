"""Training text of the chat model about answers in JSON. Their values are short.

The server holds an answer to a schema that the model does not see, so many requests here do not mention JSON. In the answers to those the
braces and keys have no weight: the model learns what stands behind a key, and not to begin with a brace by itself.
"""
import json

from words import corpus
from words.corpus import ASKED_WEIGHT, END, K, START, STOP, name_of

_JOBS = "doctor teacher cook driver farmer painter nurse baker sailor student pilot writer singer clerk".split()
_ADJECTIVES = "small big old new red blue green warm cold fast slow kind bright quiet happy".split()


def _title(r):
    return f"The {r.choice(_ADJECTIVES).capitalize()} {r.choice(K['nouns']).capitalize()}"


def _words(r):
    return r.sample(K["nouns"], r.randint(1, 3))


VALUES = {
    "name": lambda r: name_of(r, 0.1), "first_name": lambda r: name_of(r, 0.1), "title": _title, "age": lambda r: r.randint(1, 90),
    "city": lambda r: r.choice(list(K["capitals"].values())), "country": lambda r: r.choice(list(K["capitals"])),
    "job": lambda r: r.choice(_JOBS), "profession": lambda r: r.choice(_JOBS), "hobby": lambda r: r.choice(K["likes"]),
    "color": lambda r: r.choice(list(set(K["colors"].values()))), "animal": lambda r: r.choice(list(K["sounds"])), "sound": lambda r: r.choice(list(K["sounds"].values())),
    "legs": lambda r: r.choice([0, 2, 4, 6, 8]), "count": lambda r: r.randint(0, 20), "number": lambda r: r.randint(0, 100), "price": lambda r: r.choice([r.randint(1, 99), r.randint(1, 99) + 0.5]),
    "day": lambda r: r.choice(corpus.DAYS), "month": lambda r: r.choice(corpus.MONTHS), "year": lambda r: r.randint(1990, 2026), "thing": lambda r: r.choice(K["nouns"]),
    "item": lambda r: r.choice(K["nouns"]), "word": lambda r: r.choice(K["nouns"]), "items": _words, "tags": _words, "words": _words, "hobbies": lambda r: r.sample(K["likes"], 2),
    "happy": lambda r: r.random() < 0.5, "ok": lambda r: True, "done": lambda r: r.random() < 0.7, "is_old": lambda r: r.random() < 0.5, "kind": lambda r: r.choice(list(K["sounds"])),
    "size": lambda r: r.choice(["small", "big", "medium"]), "mood": lambda r: r.choice(["happy", "sad", "calm"]), "hero": lambda r: r.choice(K["heroes"]),
    "place": lambda r: r.choice(K["places"]), "subject": lambda r: r.choice(K["nouns"]), "summary": lambda r: f"A {r.choice(_ADJECTIVES)} {r.choice(K['nouns'])}.",
    "description": lambda r: f"A {r.choice(_ADJECTIVES)} {r.choice(K['nouns'])}.", "message": lambda r: r.choice(["Hello!", "All is well.", "Thank you.", "See you soon."]),
    "text": lambda r: r.choice(["Hello!", "All is well.", "Thank you.", "See you soon."]), "temperature": lambda r: r.randint(-5, 35), "score": lambda r: r.randint(0, 10),
    "email": lambda r: f"{name_of(r, 0).lower()}@example.com", "language": lambda r: r.choice(["English", "French", "Spanish"]), "fruit": lambda r: r.choice(K["categories"]["fruits"]["words"]),
    "author": lambda r: name_of(r, 0.1), "owner": lambda r: name_of(r, 0.1), "friend": lambda r: name_of(r, 0.1), "food": lambda r: r.choice(["soup", "bread", "pizza", "rice", "cake"]),
}
KINDS = {
    "person": ["name", "age", "city", "job", "hobby", "country", "email", "happy", "hobbies", "first_name", "mood", "friend", "profession", "language"],
    "city": ["city", "country", "name", "size", "language"], "animal": ["animal", "name", "sound", "legs", "color", "age", "kind", "owner", "size", "food"],
    "book": ["title", "author", "year", "subject", "summary", "price"], "story": ["title", "hero", "place", "summary", "text"],
    "product": ["name", "price", "color", "count", "description", "tags", "item"], "day": ["day", "month", "year", "mood", "temperature"],
    "list": ["items", "words", "tags", "count"], "thing": ["thing", "color", "size", "price", "is_old", "word", "number"],
    "message": ["message", "text", "subject", "ok", "done", "score"], "fruit": ["fruit", "color", "price", "count"], "pet": ["name", "kind", "age", "color", "owner", "tags"],
}


def _request(r, kind, keys, named):
    """-> a request; named: whether it says JSON"""
    one, fields = corpus.with_article(kind), corpus.listed([k.replace("_", " ") for k in keys])
    if named:
        return r.choice([
            f"Give me {one} as JSON.", f"Describe {one} in JSON with {fields}.", f"Answer in JSON: {one} with {fields}.", f"Write a JSON object for {one}.", f"Make up {one} as a JSON object.",
            f"Return {one} as JSON with the keys {fields}.", "Give me a JSON object.", f"JSON for {one}, please.", f"Reply with JSON about {one}.",
        ])
    return r.choice([
        f"Describe {one}.", f"Make up {one}.", f"Give me {one}.", f"Invent {one} with {fields}.", f"Name {one}.", f"Tell me about {one}.", f"Name {fields} of {one}.", f"Create {one}.",
        f"I need {one}.", f"Extract the {fields}.", f"{corpus.capitalised(fields)}?", f"Fill in the form for {one}.", f"Who or what is it?", f"Any {kind} will do.", f"Show me {one} now.",
    ])


def _city(r, values):
    """Cities and countries that belong together."""
    if "city" in values and "country" in values:
        values["country"] = r.choice(list(K["capitals"]))
        values["city"] = K["capitals"][values["country"]]
    if "animal" in values and "sound" in values:
        values["sound"] = K["sounds"][values["animal"]]
    return values


def document(r):
    kind = r.choice(list(KINDS))
    keys = r.sample(KINDS[kind], min(len(KINDS[kind]), r.choice([1, 2, 2, 3, 3, 4])))
    values, named = _city(r, {key: VALUES[key](r) for key in keys}), r.random() < 0.4
    question, plain = _request(r, kind, keys, named), None
    if r.random() < 0.3:
        question, answer, word = corpus.turn(r, {})
        values, named = {r.choice(["answer", "reply", "result", "response", "value", "output"]): word or " ".join(answer.split(".")[0].split()[:7])}, False
    if not corpus.unseen(question):
        return document(r)
    parts, (comma, colon) = [("{", float(named))], (", ", ": ") if r.random() < 0.5 else (",", ":")
    for n, (key, value) in enumerate(values.items()):
        parts += [(f'"{key}"{colon}', float(named)), (json.dumps(value, separators=(comma, colon)), 1.0), (comma if n < len(values) - 1 else "}", 1.0)]
    system = r.choice(K["systems"] + ["Answer in JSON.", "Answer with a JSON object."]) if r.random() < 0.3 else None
    out = [(START, 1.0), ("system\n" + system, 0.0), (STOP, ASKED_WEIGHT), ("\n", ASKED_WEIGHT)] if system else []
    return out + [
        (START, 1.0), ("user\n" + corpus.casual(r, question), 0.0), (STOP, ASKED_WEIGHT), ("\n", ASKED_WEIGHT), (START, ASKED_WEIGHT), ("assistant\n", ASKED_WEIGHT),
        *parts, (STOP, 1.0), ("\n", ASKED_WEIGHT), (END, 1.0),
    ]
