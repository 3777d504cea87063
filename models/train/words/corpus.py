"""The endless training text of the chat model: conversations, stories and plain sentences, made from templates and the tables of
knowledge.json, all written for this project.

A document is a list of (text, weight): weight 1 marks what the model has to produce (answers, plain text); questions get a tenth, since
guessing what a user will ask teaches nothing. Deterministic from the `random.Random` that is passed in.

  python3 -m words.corpus --count 5 --seed 3
"""
import argparse
import json
import random
from pathlib import Path

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
ASKED_WEIGHT = 0.1
LETTER_SHARE = 0.3         # of plain texts that are written as "Question: ... Answer: ..."


def capitalised(text):
    return text[:1].upper() + text[1:]


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


def calculation(r):
    """-> a, b, sign, word, value: sums to 20, differences, products to 10 x 10, quotients"""
    q = r.random()
    if q < 0.5:
        value = r.randint(0, 20)
        a = r.randint(0, value)
        return a, value - a, "+", "plus", value
    if q < 0.8:
        a = r.randint(0, 20)
        b = r.randint(0, a)
        return a, b, "-", "minus", a - b
    if q < 0.93:
        a, b = r.randint(0, 10), r.randint(0, 10)
        return a, b, "*", "times", a * b
    b, value = r.randint(1, 10), r.randint(0, 10)
    return b * value, b, "/", "divided by", value


# Every topic: (r, memory of the conversation) -> question, answer, the answer in one word or None.


def small_talk(r, memory):
    talk = r.choice(K["talk"])
    return r.choice(talk["said"]), r.choice(talk["replies"]), None


def identity(r, memory):
    question = r.choice(["Who are you?", "What are you?", "What is your name?", "Tell me about yourself.", "Introduce yourself."])
    if "bot" in memory:
        return question, f"I am {memory['bot']}, {memory['role']}.", memory["bot"]
    return question, r.choice(K["identity"]), "Model"


def abilities(r, memory):
    return r.choice(["What can you do?", "How can you help me?", "What do you know?", "What are you good at?"]), K["abilities"], None


def sums(r, memory):
    a, b, sign, word, value = calculation(r)
    if max(a, b, value) <= 20 and r.random() < 0.25:
        spelled = f"{NUMBERS[a]} {word} {NUMBERS[b]}"
        question = r.choice([f"What is {spelled}?", f"How much is {spelled}?"])
        return question, f"{capitalised(spelled)} is {NUMBERS[value]}.", capitalised(NUMBERS[value])
    written = f"{a} {sign} {b}" if r.random() < 0.55 else f"{a} {word} {b}"
    question = r.choice([f"What is {written}?", f"What is {written}?", f"{written} = ?", f"Calculate {written}.", f"How much is {written}?"])
    return question, f"{a} {word} {b} is {value}.", str(value)


def capitals(r, memory):
    country = r.choice(list(K["capitals"]))
    city = K["capitals"][country]
    if r.random() < 0.2:
        return f"Which country has the capital {city}?", f"{city} is the capital of {country}.", capitalised(country)
    question = r.choice([
        f"What is the capital of {country}?", f"Name the capital of {country}.", f"Capital of {country}?",
        f"Which city is the capital of {country}?", f"Tell me the capital of {country}.",
    ])
    return question, f"The capital of {country} is {city}.", city


def opposites(r, memory):
    a, b = r.choice(list(K["opposites"].items()))
    if r.random() < 0.3 and K["opposites"].get(b, a) == a:
        a, b = b, a
    question = r.choice([f"What is the opposite of {a}?", f"Opposite of {a}?", f"Give me the opposite of {a}."])
    return question, f"The opposite of {a} is {b}.", capitalised(b)


def colors(r, memory):
    thing, color = r.choice(list(K["colors"].items()))
    question = r.choice([f"What color is {thing}?", f"Which color is {thing}?", f"What is the color of {thing}?"])
    return question, f"{capitalised(thing)} is {color}.", capitalised(color)


def animals(r, memory):
    kind = r.choice(["sounds", "young", "legs", "homes"])
    animal, fact = r.choice(list(K[kind].items()))
    an_animal = with_article(animal)
    return {
        "sounds": (f"What sound does {an_animal} make?", f"{capitalised(an_animal)} {fact}.", capitalised(fact)),
        "young": (f"What is a young {animal} called?", f"A young {animal} is called a {fact}.", capitalised(fact)),
        "legs": (
            f"How many legs does {an_animal} have?", f"{capitalised(an_animal)} has {'no' if fact == '0' else fact} legs.", fact,
        ),
        "homes": (f"Where does {an_animal} live?", f"{capitalised(an_animal)} lives {fact}.", capitalised(fact.split()[-1])),
    }[kind]


def facts(r, memory):
    return tuple(r.choice(K["facts"]))


def definitions(r, memory):
    thing, text = r.choice(list(K["definitions"].items()))
    return r.choice([f"What is {thing}?", f"Explain {thing}.", f"Tell me about {thing}."]), capitalised(text) + ".", None


def calendar(r, memory):
    step, day, month = r.choice([1, -1]), r.randrange(7), r.randrange(12)
    side = "after" if step == 1 else "before"
    other_day, other_month = DAYS[(day + step) % 7], MONTHS[(month + step) % 12]
    return r.choice([
        (f"What day comes {side} {DAYS[day]}?", f"{other_day} comes {side} {DAYS[day]}.", other_day),
        (f"What month comes {side} {MONTHS[month]}?", f"{other_month} comes {side} {MONTHS[month]}.", other_month),
        (f"How many days does {MONTHS[month]} have?", f"{MONTHS[month]} has {MONTH_DAYS[month]} days.", str(MONTH_DAYS[month])),
        (f"What is the {ORDINALS[month]} month?", f"The {ORDINALS[month]} month is {MONTHS[month]}.", MONTHS[month]),
        ("Name the days of the week.", "The days of the week are " + listed(DAYS) + ".", None),
        ("Name the months.", "The months are " + listed(MONTHS) + ".", None),
    ])


def units(r, memory):
    part, whole, number = r.choice(K["units"])
    a_whole = with_article(whole)
    question = r.choice([f"How many {part} are in {a_whole}?", f"How many {part} does {a_whole} have?"])
    return question, f"There are {number} {part} in {a_whole}.", number


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
    if r.random() < 0.1:
        return r.choice(["Tell me a story.", "Write a story.", "I want to hear a story."]), story(r), None
    hero, long = r.choice(K["heroes"]) if r.random() < 0.85 else r.choice(K["nouns"]), r.random() < 0.08
    about = f"story about {with_article(hero)}"
    asked = [f"Tell me a long {about}."] if long else [
        f"Tell me a {about}.", f"Write a short {about}.", f"Tell me a short {about}.", f"Can you tell me a {about}?",
    ]
    return r.choice(asked), story(r, hero, long), None


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
    told = r.choice([f"My name is {name}.", f"I am {name}.", f"Hello, I am {name}.", f"Hi, my name is {name}.", f"You can call me {name}."])
    return told, r.choice([f"Nice to meet you, {name}!", f"Hello {name}! How can I help you?"]), "Hello"


def asking_name(r, memory):
    question = r.choice(["What is my name?", "Do you remember my name?", "Who am I?", "Do you know my name?"])
    if "name" not in memory:
        return question, "You have not told me your name yet.", "Unknown"
    return question, f"Your name is {memory['name']}.", memory["name"]


def names(r, memory):
    ask = "name" in memory and r.random() < 0.7 or "name" not in memory and r.random() < 0.25
    return asking_name(r, memory) if ask else telling_name(r, memory)


def remembered(r, memory):
    if r.random() < 0.5:
        if "likes" in memory and r.random() < 0.7:
            return "What do I like?", f"You like {memory['likes']}.", capitalised(memory["likes"])
        liked = memory["likes"] = r.choice(K["likes"])
        return r.choice([f"I like {liked}.", f"I love {liked}."]), f"That is nice! I will remember that you like {liked}.", "Nice"
    if "city" in memory and r.random() < 0.7:
        return r.choice(["Where do I live?", "Do you remember where I live?"]), f"You live in {memory['city']}.", memory["city"]
    city = memory["city"] = r.choice(list(K["capitals"].values()))
    return r.choice([f"I live in {city}.", f"I am from {city}."]), f"{city} is a nice place!", "Nice"


def household(r, memory):
    count, unit = r.choice([1, 2, 3, 5, 10, 15, 20, 30, 45]), r.choice(["minute", "second", "hour"])
    time = f"{count} {unit}" + ("s" if count > 1 else "")
    room, switch, hour = r.choice("kitchen bedroom garden hall office bathroom".split()), r.choice(["on", "off"]), r.randint(1, 12)
    city, half = r.choice(list(K["capitals"].values())), r.choice(["am", "pm"])
    task = r.choice(["call my mother", "buy milk", "water the plants", "feed the cat", "take a break", "call " + r.choice(K["names"])])
    unknown_weather = "I am sorry, I have no live data, so I cannot tell you the weather."
    return r.choice([
        (f"Set a timer for {time}.", f"All right, a timer for {time}.", "Okay"),
        (f"Set an alarm for {hour} {half}.", f"All right, an alarm for {hour} {half}.", "Okay"),
        (f"What is the weather like in {city}?", unknown_weather, "Unknown"),
        (f"What is the weather in {city}?", unknown_weather, "Unknown"),
        ("What time is it?", "I am sorry, I have no clock, so I cannot tell you the time or the date.", "Unknown"),
        (f"Turn {switch} the light in the {room}.", f"All right, the light in the {room} is {switch}.", "Okay"),
        ("Play some music.", "I am sorry, I cannot play music, but I can tell you a story.", "Sorry"),
        (f"Remind me to {task}.", f"All right, I will remind you to {task}.", "Okay"),
        ("Cancel the timer.", "All right, it is cancelled.", "Okay"),
    ])


def unknown(r, memory):
    topic = r.choice(K["topics"]) if r.random() < 0.6 else "the " + r.choice(K["nouns"])
    question = r.choice([
        f"Tell me about {topic}.", f"What do you know about {topic}?", f"Explain {topic}.", f"What do you think about {topic}?",
        f"Who invented {topic}?",
    ])
    return question, r.choice([
        f"I am sorry, I do not know enough about {topic}.",
        f"I am only a small demonstration model, so I do not know much about {topic}.",
    ]), "Unknown"


# Topic -> its share, in parts of the sum.
TOPICS = {
    small_talk: 14, identity: 4, abilities: 2, sums: 20, capitals: 7, opposites: 4, colors: 3, animals: 3, facts: 4, definitions: 3,
    calendar: 4, units: 3, lists: 5, stories: 7, counting: 3, spelling: 4, repeating: 3, names: 8, remembered: 4, household: 6,
    unknown: 4,
}


def turn(r, memory):
    topic = r.choices(list(TOPICS), list(TOPICS.values()))[0]
    return topic(r, memory)


def casual(r, text):
    """How users write, and what a recogniser makes of them: fillers, lower case, missing punctuation."""
    if r.random() < 0.06 and not text.startswith("I "):
        text = r.choice(["Hey, ", "Okay, ", "So, ", "And ", "Well, "]) + text[0].lower() + text[1:]
    if r.random() < 0.15:
        text = text.lower()
    return text.rstrip("?.!") if r.random() < 0.17 else text


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
        return r.choice(K["oneWord"]), lambda answer, word: (word or "Yes").split(" ")[-1].rstrip(".") + "."
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
    count = max(turns or r.choice([1, 1, 2, 3, 4, 6]), 2 if remembers else 1)
    for i in range(count):
        topic = telling_name if remembers and i == 0 else asking_name if remembers and i == count - 1 else turn
        question, answer, word = topic(r, memory)
        out += [
            (START, 1.0), ("user\n" + casual(r, question), ASKED_WEIGHT), (STOP, ASKED_WEIGHT), ("\n", ASKED_WEIGHT),
            (START, ASKED_WEIGHT), ("assistant\n", ASKED_WEIGHT), (styled(answer, word), 1.0), (STOP, 1.0), ("\n", ASKED_WEIGHT),
        ]
    return out + [(END, 1.0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    r = random.Random(options.seed)
    for _ in range(options.count):
        print("".join(text for text, _ in document(r)), "\n-----")


if __name__ == "__main__":
    main()
