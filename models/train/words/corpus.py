"""The endless training text of the chat model: conversations, stories and plain sentences, made from templates and the tables of
knowledge.json, all written for this project.

A document is a list of (text, weight): weight 1 marks what the model has to produce (answers, plain text); questions get a tenth, since
guessing what a user will ask teaches nothing. Deterministic from the `random.Random` that is passed in.

  python3 -m words.corpus --count 5 --seed 3
"""
import argparse
import json
import random
import re
from pathlib import Path

from common import sentences
from words import everyday
from words.sums import calculation
from words.sums import question as asked_sum

K = json.loads((Path(__file__).parent / "knowledge.json").read_text(encoding="utf8"))
START, STOP, END = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
).split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
INVENTED_NAMES = 0.25      # share of names that occur nowhere else, so that the model learns to copy
MEMORY_SHARE = 0.3         # of conversations that tell a name first and ask for it at the end
PLAIN_SHARE = 0.1          # of documents without chat markup
ASKED_WEIGHT = 0.3
WORDINGS = everyday.sections("wordings.txt", str.splitlines)
_SPOKEN = sentences.Sentences(0)      # the words of the speech models
LETTER_SHARE = 0.3         # of plain texts that are written as "Question: ... Answer: ..."


UNSEEN = Path(__file__).parents[2] / "eval/chat.json"


def wording(text):
    """A request without case, punctuation and the space around it."""
    return " ".join(re.sub(r"[^a-z0-9+*/=' -]", "", text.lower().replace("’", "'")).split())


_UNSEEN = frozenset(wording(message) for prompt in json.loads(UNSEEN.read_text(encoding="utf8"))["prompts"] for message, _ in prompt["turns"])


def unseen(text):
    """Whether a request may be in the training text: it is none of the evaluation's."""
    return wording(text) not in _UNSEEN


def capitalised(text):
    return text[:1].upper() + text[1:]


def spoken_nouns():
    return _SPOKEN.nouns


def with_article(word):
    vowel = word[0].lower() in "aeiou" and not word.startswith("un") or word.startswith("hour")
    return ("an " if vowel else "a ") + word


def listed(words):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def name_of(r, invented=INVENTED_NAMES):
    if r.random() >= invented:
        return r.choice(K["names"])
    onsets, vowels = "b d f g h j k l m n p r s t v w z br tr kl st sh".split(), "a e i o u ai".split()
    body = "".join(r.choice(onsets) + r.choice(vowels) for _ in range(r.randint(1, 3)))
    return capitalised(body + r.choice(["", "n", "r", "l", "s", "x", "m"]))


def story(r, hero=None, long=False):
    one = r.choice
    hero = hero or one(K["heroes"])
    name, thing, place, look = name_of(r), one(K["things"]), one(K["places"]), one(K["thingAdjectives"])
    friend_kind = one([h for h in K["heroes"] if h != hero])
    friend = one([n for n in K["names"] if n != name])
    out = [
        f"Once upon a time there was {with_article(one(K['adjectives']))} {hero} named {name}.",
        f"{name} lived {one(['near', 'in', 'not far from'])} {with_article(place)}.",
        f"One {one(['morning', 'evening', 'day', 'night'])}, {name} found {with_article(look)} {thing}.",
        one([
            f"{name} wanted to know what it was for.", f"The {thing} was very {one(['old', 'bright', 'heavy', 'beautiful'])}.",
            f"{name} was {one(['surprised', 'happy', 'a little afraid'])}.",
        ]),
    ]
    for _ in range(r.randint(3, 7) if long else one([0, 0, 0, 1])):
        out.append(one([
            f"On the next day, {name} walked to the {one(K['places'])}.", f"After that, {name} sat down and rested.",
            f"The {hero} looked at the {thing} again.",
        ]))
        out.append(one([
            f"There {name} met {with_article(one(K['adjectives']))} {one(K['heroes'])}, who asked about the {thing}.",
            f"It began to {one(['rain', 'snow'])}, but {name} did not stop.", f"The way was long, but the {hero} was not afraid.",
            f"{name} was very {one(['tired', 'hungry', 'happy', 'curious'])}.",
        ]))
    out += [
        one([
            f"{capitalised(with_article(friend_kind))} named {friend} came and asked for help.",
            f"Then {with_article(friend_kind)} named {friend} came along the road.",
        ]),
        one([
            f"{name} and {friend} became good friends.", f"{name} gave the {thing} to {friend} and felt glad.",
            f"The {hero} and the {friend_kind} shared the {thing}.",
        ]),
        one(["The end.", "And they lived happily ever after.", f"And {name} never forgot that day."]),
    ]
    return " ".join(out)


# Every topic: (r, memory of the conversation) -> question, answer, the answer in one word or None.


def small_talk(r, memory):
    talk = r.choice(K["talk"])
    return r.choice(talk["said"]), r.choice(talk["replies"]), None


def identity(r, memory):
    question = asked(r, "asking who")
    if "bot" in memory:
        return question, f"I am {memory['bot']}, {memory['role']}.", memory["bot"]
    return question, r.choice(K["identity"]), "Model"


def abilities(r, memory):
    return r.choice(["What can you do?", "How can you help me?", "What do you know?", "What are you good at?"]), K["abilities"], None


def sums(r, memory):
    a, b, sign, word, value = calculation(r)
    if max(a, b, value) <= 20 and r.random() < 0.6:
        question = asked_sum(r, NUMBERS[a], NUMBERS[b], sign, word, in_words=True)
        return question, f"{NUMBERS[a]} {word} {NUMBERS[b]} is {NUMBERS[value]}.".capitalize(), NUMBERS[value].capitalize()
    return asked_sum(r, a, b, sign, word), f"{a} {word} {b} is {value}.", str(value)


def asked(r, section, **values):
    """A question of a section of wordings.txt."""
    text = everyday.filled(r, r.choice(WORDINGS[section]), values, {})
    return capitalised(re.sub(r"\bi\b", "I", re.sub(r"\s+([?.!,])", r"\1", re.sub(r" +", " ", text)).strip()))


def capitals(r, memory):
    country, other = r.sample(list(K["capitals"]), 2)
    city, q = K["capitals"][country], r.random()
    if q < 0.15:
        return asked(r, "country of a capital", city=city), f"{city} is the capital of {country}.", capitalised(country)
    if q < 0.25:
        right = r.random() < 0.5
        question = asked(r, "whether a capital", city=city if right else K["capitals"][other], country=country)
        return question, ("Yes" if right else "No") + f", the capital of {country} is {city}.", "Yes" if right else "No"
    return asked(r, "capital", country=country), f"The capital of {country} is {city}.", city


def opposites(r, memory):
    a, b = r.choice(list(K["opposites"].items()))
    if r.random() < 0.3 and K["opposites"].get(b, a) == a:
        a, b = b, a
    return asked(r, "opposite", word=a), f"The opposite of {a} is {b}.", capitalised(b)


def colors(r, memory):
    thing, color = r.choice(list(K["colors"].items()))
    other = r.choice([c for c in K["colors"].values() if c != color])
    section = "colour" if r.random() < 0.8 else "whether a colour"
    return asked(r, section, thing=thing, one=color, other=other), f"{capitalised(thing)} is {color}.", capitalised(color)


def animals(r, memory):
    kind = r.choice(["sounds", "young", "legs", "homes"])
    animal, fact = r.choice(list(K[kind].items()))
    an_animal = with_article(animal)
    answer, word = {
        "sounds": (f"{capitalised(an_animal)} {fact}.", capitalised(fact)), "young": (f"A young {animal} is called a {fact}.", capitalised(fact)),
        "legs": (f"{capitalised(an_animal)} has {'no' if fact == '0' else fact} legs.", fact),
        "homes": (f"{capitalised(an_animal)} lives {fact}.", capitalised(fact.split()[-1])),
    }[kind]
    many = animal if animal in ("fish", "sheep", "deer") else sentences.plural(animal)
    section = {"sounds": "sound", "homes": "home"}.get(kind, kind)
    return asked(r, section, animal=animal, an=an_animal, animals=many), answer, word


def facts(r, memory):
    return everyday.ask(r, everyday.FACTS, {})


def definitions(r, memory):
    thing, text = r.choice(list(K["definitions"].items()))
    return asked(r, "definition", thing=thing), capitalised(text) + ".", None


def calendar(r, memory):
    step, day, month = r.choice([1, -1]), r.randrange(7), r.randrange(12)
    side = "after" if step == 1 else "before"
    other_day, other_month = DAYS[(day + step) % 7], MONTHS[(month + step) % 12]
    kind = r.choice(["day", "day", "month", "days of a month", "month by number", "days of the week", "months of the year"])
    if kind == "day":
        return asked(r, f"day {side}", day=DAYS[day]), f"{other_day} comes {side} {DAYS[day]}.", other_day
    if kind == "month":
        return asked(r, f"month {side}", month=MONTHS[month]), f"{other_month} comes {side} {MONTHS[month]}.", other_month
    question = asked(r, kind, month=MONTHS[month], ordinal=ORDINALS[month], number=str(month + 1))
    return question, *{
        "days of a month": (f"{MONTHS[month]} has {MONTH_DAYS[month]} days.", str(MONTH_DAYS[month])),
        "month by number": (f"The {ORDINALS[month]} month is {MONTHS[month]}.", MONTHS[month]),
        "days of the week": ("The days of the week are " + listed(DAYS) + ".", None),
        "months of the year": ("The months are " + listed(MONTHS) + ".", None),
    }[kind]


def units(r, memory):
    part, whole, number = r.choice(K["units"])
    a_whole = with_article(whole)
    return asked(r, "parts", part=part, whole=whole, awhole=a_whole), f"There are {number} {part} in {a_whole}.", number


def lists(r, memory):
    plural, category = r.choice(list(K["categories"].items()))
    words = r.sample(category["words"], min(r.choice([1, 2, 3, 3, 4, 5]), len(category["words"])))
    count = len(words)
    if count == 1:
        one = with_article(category["one"])
        return r.choice([f"Name {one}.", f"Give me {one}.", f"Tell me {one}."]), capitalised(words[0]) + ".", capitalised(words[0])
    if r.random() < 0.3:
        answer = "\n".join(f"{i + 1}. {capitalised(w)}" for i, w in enumerate(words))
        return r.choice([f"Make a list of {NUMBERS[count]} {plural}.", f"Write a list of {count} {plural}."]), answer, None
    question = r.choice([f"Name {NUMBERS[count]} {plural}.", f"Give me {count} {plural}.", f"List {count} {plural}."])
    return question, capitalised(listed(words)) + ".", None


def stories(r, memory):
    if r.random() < 0.15:
        return r.choice([
            "Tell me a story.", "Write a story.", "I want to hear a story.", "A story please.", "Tell a story.", "Story time!", "Can I hear a story?",
            "Tell me another story.", "One more story.", "Read me a bedtime story.", "I would like a story.", "Do you know a story?", "Make up a story.",
            "Can we have a bedtime story?", "Let us have a story.", "Please read a story to me.", "How about a story?", "A fairy tale, please.", "Is there a story for me?",
            "I am ready for a story.", "Let me hear a story.", "Tell us a story.", "A short story now.", "Could I get a story?", "I need a story to fall asleep.",
            "Tell me a bedtime story.", "Another story, please.", "Tell me your best story.", "Invent a story.",
        ]), story(r), None
    q, long = r.random(), r.random() < 0.06
    hero = r.choice(K["heroes"]) if q < 0.55 else r.choice(K["nouns"]) if q < 0.75 else r.choice(_SPOKEN.nouns) if q < 0.95 else everyday.made(r)
    one = with_article(hero)
    if long:
        return r.choice([f"Tell me a long story about {one}.", f"Write a long story about {one}."]), story(r, hero, True), None
    kind = r.choice(["story", "story", "story", "short story", "bedtime story", "little story", "fairy tale", "tale", "nice story", "funny story"])
    who = r.choice([one, one, one, one, f"the {hero}", f"{hero}s", f"my {hero}", f"a little {hero}", f"two {hero}s"])
    about = f"{kind} {r.choice(['about', 'about', 'about', 'of', 'with'])} {who}"
    wishes = [
        f"Tell me something about {who} as a {kind}.", f"Tell us the {kind} of {who}.", f"Tell me the {kind} about {who}.", f"I would like the {kind} of {who}.",
        f"Let us have a {about}.", f"Can we have a {about}?", f"A {kind} in which {who} {r.choice(['plays', 'lives', 'comes', 'is', 'helps'])}, please.",
        f"How about a {about}?", f"I'd love a {about}.", f"{capitalised(who)}: tell me a {kind}.", f"Please tell a {kind} where {who} is the hero.",
        f"I am in the mood for a {about}.", f"My {r.choice(['son', 'daughter', 'child', 'sister'])} wants a {about}.", f"Say a {about}.", f"Would you tell me a {about}?",
        f"Tell me a {about}.", f"Write a {about}.", f"Tell a {about}.", f"Can you tell me a {about}?", f"I want a {about}.", f"Give me a {about}.",
        f"Could you write a {about}?", f"Make up a {about}.", f"Do you know a {about}?", f"Let me hear a {about}.", f"{capitalised(about)} please.",
        f"Invent a {about}.", f"I would like to hear a {about}.", f"Please tell us a {about}.",
    ]
    return r.choice(wishes), story(r, hero, False), None


def poems(r, memory):
    known = r.random() < 0.6
    subject = r.choice(list(K["haikus"])) if known else r.choice(K["nouns"])
    thing = subject if known else r.choice([subject, "the " + subject, with_article(subject)])
    about = r.choice([f" about {thing}", f" on {thing}", f" about {thing}", f" of {thing}", ""])
    if r.random() < 0.5:
        asked = r.choice([
            "Write a haiku{0}.", "Compose a haiku{0}.", "Give me a haiku{0}.", "A haiku{0} please.", "Tell me a haiku{0}.", "Make a haiku{0}.",
            "Can you write a haiku{0}?", "I would like a haiku{0}.", "Write me a short haiku{0}.", "Do you know a haiku{0}?",
        ]).format(about)
        if about and not known:
            return asked, f"{capitalised(with_article(subject))} in the sun,\nquiet in the morning light.\nA new day begins.", None
        return asked, K["haikus"][subject if about else r.choice(list(K["haikus"]))], None
    kind = r.choice(["a poem", "a poem", "a short poem", "a little poem", "a rhyme", "a verse", "two lines"])
    asked = r.choice([
        "Rhyme something{0}.", "Make a rhyme{0}.", "Find a rhyme{0}.", "Put something{0} in rhymes.", "Write something in verse{0}.", "A rhyme{0} please.", "Write {1}{0}.", "Compose {1}{0}.", "Tell me {1}{0}.", "Can you write {1}{0}?", "Give me {1}{0}.", "I want {1}{0}.",
        "Write me {1}{0}.", "Please write {1}{0}.", "Make up {1}{0}.", "Do you know {1}{0}?",
    ]).format(about, kind)
    if not about:
        return asked, r.choice(K["verses"]), None
    said = subject if known else "the " + subject
    return asked, f"{capitalised(said)}, {said}, so dear to me,\nas lovely as a summer sea.", None


def counting(r, memory):
    first, more = r.randint(0, 20) if r.random() < 0.7 else r.randint(0, 80), r.randint(3, 9)
    q = r.random()
    if q < 0.25:
        last = r.choice([5, 10, 20])
        return r.choice([f"Count to {last}.", f"Count to {NUMBERS[last]}."]), ", ".join(map(str, range(1, last + 1))) + ".", None
    if q < 0.4:
        return f"Count down from {more}.", ", ".join(map(str, range(more, -1, -1))) + ".", None
    if q < 0.55:
        return f"What number comes after {first}?", f"{first + 1} comes after {first}.", str(first + 1)
    return f"Count from {first} to {first + more}.", ", ".join(map(str, range(first, first + more + 1))) + ".", None


def spelling(r, memory):
    word = r.choice(K["nouns"]) if r.random() < 0.8 else name_of(r)
    return r.choice([f"Spell {word}.", f"Spell the word {word}.", f"How do you spell {word}?"]), "-".join(word.upper()) + ".", None


def repeating(r, memory):
    words = " ".join(r.choice(K["nouns"]) for _ in range(r.choice([1, 1, 2, 3, 4])))
    return r.choice([f"Say {words}.", f"Repeat after me: {words}", f"Please say {words}."]), capitalised(words) + ".", capitalised(words)


def telling_name(r, memory):
    name = memory["name"] = name_of(r)
    told = asked(r, "telling a name", name=name)
    return told, r.choice([f"Nice to meet you, {name}!", f"Hello {name}! How can I help you?"]), "Hello"


def asking_name(r, memory):
    question = asked(r, "asking for the name")
    if "name" not in memory:
        return question, "You have not told me your name yet.", "Unknown"
    return question, f"Your name is {memory['name']}.", memory["name"]


def names(r, memory):
    ask = "name" in memory and r.random() < 0.7 or "name" not in memory and r.random() < 0.25
    return asking_name(r, memory) if ask else telling_name(r, memory)


def remembered(r, memory):
    if r.random() < 0.5:
        if "likes" in memory and r.random() < 0.7:
            return asked(r, "asking for a liking"), f"You like {memory['likes']}.", capitalised(memory["likes"])
        liked = memory["likes"] = r.choice(K["likes"]) if r.random() < 0.6 else sentences.plural(r.choice(_SPOKEN.nouns))
        return asked(r, "telling a liking", liked=liked), f"That is nice! I will remember that you like {liked}.", "Nice"
    if "city" in memory and r.random() < 0.7:
        return asked(r, "asking for the home"), f"You live in {memory['city']}.", memory["city"]
    city = memory["city"] = r.choice(list(K["capitals"].values()))
    return asked(r, "telling the home", city=city), f"{city} is a nice place!", "Nice"


def household(r, memory):
    count, unit = r.choice([1, 2, 3, 5, 10, 15, 20, 30, 45]), r.choice(["minute", "second", "hour"])
    time = f"{count} {unit}" + ("s" if count > 1 else "")
    room, switch, hour = r.choice("kitchen bedroom garden hall office bathroom".split()), r.choice(["on", "off"]), r.randint(1, 12)
    city, half = r.choice(list(K["capitals"].values())), r.choice(["am", "pm"])
    task = r.choice(["call my mother", "buy milk", "water the plants", "feed the cat", "take a break", "call " + r.choice(K["names"])])
    unknown_weather = "I am sorry, I have no live data, so I cannot tell you the weather."
    only_said = " This demonstration can only say so."
    return r.choice([
        (f"Set a timer for {time}.", f"All right, a timer for {time}." + only_said, "Okay"),
        (f"Set an alarm for {hour} {half}.", f"All right, an alarm for {hour} {half}." + only_said, "Okay"),
        (asked(r, "alarm", time=f"{hour} {half}"), f"All right, an alarm for {hour} {half}." + only_said, "Okay"),
        (asked(r, "alarm", time=NUMBERS[hour]), f"All right, an alarm for {NUMBERS[hour]}." + only_said, "Okay"),
        (asked(r, "timer", time=time), f"All right, a timer for {time}." + only_said, "Okay"),
        (asked(r, "timer", time=f"{NUMBERS[hour]} minutes"), f"All right, a timer for {NUMBERS[hour]} minutes." + only_said, "Okay"),
        (f"What is the weather like in {city}?", unknown_weather, "Unknown"),
        (f"What is the weather in {city}?", unknown_weather, "Unknown"),
        ("What time is it?", "I am sorry, I have no clock, so I cannot tell you the time or the date.", "Unknown"),
        (f"Turn {switch} the light in the {room}.", f"All right, the light in the {room}: {switch}." + only_said, "Okay"),
        ("Play some music.", "I am sorry, I cannot play music, but I can tell you a story.", "Sorry"),
        (f"Remind me to {task}.", f"All right, a reminder: {task}." + only_said, "Okay"),
        ("Cancel the timer.", "All right, it is cancelled.", "Okay"),
    ])


def unknown(r, memory):
    topic = r.choice(K["topics"]) if r.random() < 0.6 else "the " + r.choice(K["nouns"])
    question = r.choice([
        f"Tell me about {topic}.", f"What do you know about {topic}?", f"Explain {topic}.", f"What do you think about {topic}?",
        f"Who invented {topic}?",
    ])
    return question, everyday.ask(r, [everyday.UNKNOWN], _others())[1], "Unknown"


def _others():
    return {"noun": K["nouns"], "name": K["names"]}


def everyday_talk(r, memory):
    question, answer, word = everyday.ask(r, everyday.EVERYDAY, _others())
    if word == "Model" and "bot" in memory:
        return question, f"I am {memory['bot']}, {memory['role']}.", memory["bot"]
    return question, answer, word


def refusals(r, memory):
    return everyday.ask(r, everyday.REFUSALS, _others())


_COMMANDS = [
    "could you {v} {NP}?", "would you {v} {NP}?", "can you {v} {NP} {ADV}?", "would you please {v} {NP}?", "will you {v} {NP}?", "{v} my {A} {N}.", "{v} me my {A} {N}.",
    "could you turn the {device} off?", "could you switch the {device} on, please?", "would you turn off the {device}?", "can you switch the {room} {device} off?", "turn the {device} off.",
    "would you give me the {N}?", "could you bring me the {A} {N}?", "get me my {A} {N}.", "fetch the {A} {N}, please.", "show me your {N}.", "carry the {N} to the {room}.",
    "could you close the {N} in the {room}?", "open the {N} in the {room}, please.", "can you clean the {N}?", "put on your {N}.", "take off your {A} {N}.", "wash the {N}, please.",
    "please {v} {NP}.", "{v} {NP}, please.", "could you please {v} {NP} for me?", "{v} {NP} {ADV}.", "open the {N}.", "close the {N}.", "please open the {N}.",
    "please close the {N}.", "shut the {N}, please.", "turn on the {room} {device}.", "turn off the {room} {device}.", "switch on the {device}.", "turn on the {room} {device}, please.", "switch the {device} off.", "turn on the {room} {device}.", "lock the {N}.",
    "bring me the {N}.", "please bring {NP}.", "can you open the {N}?", "would you close the {N}, please?", "put the {N} on the {N}.", "take {NP} to {PLACE}.",
    "let's {v} {NP}.", "don't {v} {NP}.", "never {v} {NP} {PP}.", "turn the {N} {UD}.", "clean the {N} {ADV}.", "give {NAME} the {N}.", "start the {N}.",
    "stop the {N}.", "move the {N} to the {N}.", "please be quiet in the {N}.", "leave the {N} {PP}.", "pass me the {N}, please.", "hold the {N}.",
]
_STATEMENTS = [
    "{NP} {V} {NP}.", "{NP} {V} {NP} {PP}.", "{P} {V} {NP} {ADV}.", "{NP} {VI} {PP}.", "{NP} was {A}.", "the {N} is {A}.", "{NP} and {NP} are {A}.",
    "the meeting is on {DAY}, {MONTH} {ORD}.", "we leave on {DAY} at {TIME}.", "it starts at {TIME}.", "it costs {NUM2} dollars.",
    "{NAME} and {NAME} {V} {NP} in {PLACE}.", "the {N} leaves at {TIME}.", "there is {A1} {N} {PP}.", "there are {NUM2} {NS} {PP}.",
    "{P} {M} {v} {NP} because {P} {V} {NP}.", "I think {NP} is {A}.", "when {NP} {VI}, {NP} {VI}.", "your {N} has been {Vp}.", "I'm {NAME} from {PLACE}.",
    "she was born on {MONTH} {ORD}.", "the {A} {N} {V} the {A} {N}.",
]
_QUESTIONS = [
    "{WH} {M} {P} {v} {NP}?", "do you {v} {NP}?", "did they {v} {NP}?", "will she {v} {NP} {ADV}?", "have you {V} {NP}?", "where is my {N}?",
    "how much is the {N}?", "why did {NP} {v} {NP}?", "isn't {NP} {A}?", "what do you think about {NP}?", "what happened to {NP}?", "how do I {v} {NP}?",
    "which {N} is {A}?", "who {V} {NP}?", "when does the {N} {v} {NP}?", "is the {N} {A}?", "what colour is my {N}?", "how many {NS} {M} {P} {v}?",
]


_SLOTS = {
    "room": "kitchen bedroom garden hall office bathroom".split(), "device": "light light light lamp lamp heater heating fan radio television oven".split(),
}


def spoken(r, memory):
    """Commands, statements and questions as in tests of voices: the words are those of the speech models."""
    _SPOKEN.random = r
    kind, frames = r.choice([("command", _COMMANDS), ("command", _COMMANDS), ("statement", _STATEMENTS), ("question", _QUESTIONS)])
    said = capitalised(re.sub(r"\{(\w+)\}", lambda m: r.choice(_SLOTS[m[1]]) if m[1] in _SLOTS else _SPOKEN._slot(m[1]), r.choice(frames)))
    if kind == "command":
        return said, r.choice(["All right, I heard you. This demonstration can only say so.", "Understood. I am a demonstration, so I can only say so."]), "Okay"
    if kind == "statement":
        return said, r.choice(["I see. Thank you for telling me.", "I understand. What would you like to do next?"]), "Okay"
    return said, everyday.ask(r, [everyday.UNKNOWN], _others())[1], "Unknown"


# Topic -> its share, in parts of the sum.
TOPICS = {
    small_talk: 8, identity: 3, abilities: 2, sums: 13, capitals: 8, opposites: 5, colors: 4, animals: 5, facts: 11, definitions: 3,
    calendar: 6, units: 4, lists: 5, stories: 8, poems: 2.5, counting: 3, spelling: 4, repeating: 3, names: 7, remembered: 6, household: 6,
    unknown: 3, everyday_talk: 27, refusals: 26, spoken: 11,
}
_SHORT = [
    ("What is ", "What's "), ("Who is ", "Who's "), ("I am ", "I'm "), ("Where is ", "Where's "), (" do not ", " don't "), (" cannot ", " can't "),
    ("It is ", "It's "), ("largest", "biggest"), ("color", "colour"), ("smallest", "tiniest"), ("closest", "nearest"), (" called", " named"),
]
_WISHES = ("Tell me ", "Give me ", "Name ", "Write ", "List ", "Count ", "Spell ", "Say ", "Explain ", "Calculate ", "Make ")


def rephrased(r, text):
    """The same request in other words, sometimes."""
    q, asked = r.random(), re.fullmatch(r"(What|Who|Where|Which \w+) (is|are) (.+)\?", text)
    if asked and q < 0.3:
        subject, verb, rest = asked.group(1).lower(), asked.group(2), asked.group(3)
        direct = f"{subject} {rest} {verb}"
        return r.choice([
            f"Can you tell me {direct}?", f"Do you know {direct}?", f"Tell me {direct}.", f"Please tell me {direct}.", f"I want to know {direct}.",
            f"Could you tell me {direct}?", f"{capitalised(rest)}?", f"I would like to know {direct}.", f"Hey, {subject} {verb} {rest}?", f"{text} Please answer.",
            f"{text[:-1]}, please?", f"Quick question: {subject} {verb} {rest}?", f"I have a question: {subject} {verb} {rest}?",
        ])
    if text.startswith(_WISHES) and q < 0.3:
        wish = text[0].lower() + text[1:].rstrip(".")
        return r.choice([
            f"Please {wish}.", f"Can you {wish}?", f"Could you {wish}?", f"Could you please {wish}?", f"I want you to {wish}.", f"Would you {wish}, please?",
            f"{text.rstrip('.')}, please.", f"{text.rstrip('.')} now.", f"Can you please {wish} for me?", f"I'd like you to {wish}.",
        ])
    if q > 0.7:
        for long, short in _SHORT:
            text = text.replace(long, short)
    return text


def turn(r, memory, topics=None):
    """A request that is none of the evaluation's, its answer, and the answer in one word or None."""
    topics = topics or TOPICS
    while True:
        topic, before = r.choices(list(topics), list(topics.values()))[0], dict(memory)
        question, answer, word = topic(r, memory)
        question = rephrased(r, question)
        if unseen(question):
            return question, answer, word
        memory.clear()
        memory.update(before)


def casual(r, text):
    """How users write, and what a recogniser makes of them: fillers, lower case, missing punctuation."""
    written = text
    if r.random() < 0.06 and not text.startswith(("I ", "I'")):
        written = r.choice(["Hey, ", "Okay, ", "So, ", "And ", "Well, ", "Hi, ", "Hello! "]) + text[0].lower() + text[1:]
    if r.random() < 0.3:
        written = written.lower()
    if r.random() < 0.3:
        written = written.rstrip("?.!") or written
    return written if unseen(written) else text


def plain(r):
    """Text without chat markup, for completions."""
    q = r.random()
    if q < 0.45:
        return story(r, long=r.random() < 0.2)
    if q < 1 - LETTER_SHARE:
        told = (capitals, opposites, colors, sums, definitions, facts, calendar)
        return " ".join(r.choice(told)(r, {})[1] for _ in range(r.randint(2, 8)))
    asked, replied = r.choice([("Question: ", "Answer: "), ("Q: ", "A: "), ("User: ", "Assistant: ")])
    memory = {}
    turns = [turn(r, memory) for _ in range(r.randint(1, 4))]
    return "\n".join(f"{asked}{question}\n{replied}{answer}" for question, answer, _ in turns)


def _style(r, memory):
    """-> system prompt or None, and how it changes an answer (answer, one word) -> answer"""
    def unchanged(answer, word):
        return answer

    q = r.random()
    if q < 0.28:
        return r.choice(K["systems"]), unchanged
    if q < 0.36:
        memory["oneWord"] = True
        return r.choice(K["oneWord"]), lambda answer, word: word.split(" ")[-1].rstrip(".") + "."
    if q < 0.42:
        return r.choice(K["upper"]), lambda answer, word: answer.upper()
    if q < 0.44:
        return r.choice(K["lower"]), lambda answer, word: answer.lower()
    if q < 0.49:
        memory.update(bot="a pirate", role="and I sail the sea")
        return r.choice(K["pirate"]), lambda answer, word: "Arr! " + answer + (" Ahoy!" if len(answer) < 40 else " Yo ho ho!")
    if q < 0.57:
        memory.update(bot=name_of(r) if r.random() < 0.4 else r.choice(K["bots"]), role=r.choice(K["roles"]))
        return f"You are {memory['bot']}, {memory['role']}." + r.choice(["", "", " Answer briefly."]), unchanged
    if q < 0.60:
        memory["name"] = name_of(r)
        return f"The name of the user is {memory['name']}.", unchanged
    return None, unchanged


def document(r, turns=None):
    if turns is None and r.random() < PLAIN_SHARE:
        return [(plain(r), 1.0), (END, 1.0)]
    memory, out = {}, []
    system, styled = _style(r, memory)
    if system:
        out += [(START, 1.0), ("system\n" + system, ASKED_WEIGHT), (STOP, ASKED_WEIGHT), ("\n", ASKED_WEIGHT)]
    remembers = r.random() < MEMORY_SHARE
    count = max(turns or r.choice([1, 1, 1, 2, 2, 3, 4, 6, 10]), 2 if remembers else 1)
    for i in range(count):
        topic = telling_name if remembers and i == 0 else asking_name if remembers and i == count - 1 else turn
        question, answer, word = topic(r, memory)
        while word is None and "oneWord" in memory:         # a story has no answer of one word, and is never answered with one
            question, answer, word = turn(r, memory)
        out += [
            (START, 1.0), ("user\n" + casual(r, question), ASKED_WEIGHT), (STOP, ASKED_WEIGHT), ("\n", ASKED_WEIGHT),
            (START, ASKED_WEIGHT), ("assistant\n", ASKED_WEIGHT), (styled(answer, word), 1.0), (STOP, 1.0), ("\n", ASKED_WEIGHT),
        ]
    return out + [(END, 1.0)]


def show(document, about):
    """The command line of a file whose `document` it is: prints some."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    r = random.Random(options.seed)
    for _ in range(options.count):
        print("".join(text for text, _ in document(r)), "\n-----")


if __name__ == "__main__":
    show(document, __doc__)
