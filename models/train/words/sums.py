"""Sums as people ask for them: numbers up to 100, with signs or in words."""

MOST = 100      # of a number in a sum or difference


def calculation(r, most=None):
    """-> a, b, sign, word, value: sums and differences of numbers up to 100 or `most`, products to 10 x 10, quotients of these"""
    q = r.random()
    most = most or (MOST if r.random() < 0.85 else 20)
    a, b = r.randint(0, most), r.randint(0, most)
    if q < 0.5:
        return a, b, "+", "plus", a + b
    if q < 0.84:
        return max(a, b), min(a, b), "-", "minus", abs(a - b)
    a, b = r.randint(0, 10), r.randint(0, 10)
    if q < 0.95 or b == 0:
        return a, b, "*", "times", a * b
    return a * b, b, "/", "divided by", a


def question(r, a, b, sign, word, in_words=False):
    """With signs or words, and as people type it. in_words: a and b are words."""
    if not in_words and r.random() < 0.5:
        space = " " if r.random() < 0.7 else ""
        written = f"{a}{space}{r.choice(['*', 'x', '×']) if sign == '*' else sign}{space}{b}"
    else:
        written = f"{a} {word} {b}"
    ways = [
        f"What is {written}?", f"What is {written}?", f"what is {written}", f"what's {written}", f"What's {written}?", f"{written} = ?",
        f"{written}=", f"{written}", f"{written}?", f"Calculate {written}.", f"calculate {written}", f"How much is {written}?", f"how much is {written}",
        f"Compute {written}.", f"Can you tell me what {written} is?", f"Tell me {written}.", f"please calculate {written}", f"{written} makes?",
        f"{written} is how much?", f"{written} gives what?", f"How much does {written} make?", f"What does {written} make?", f"{written}, how much is that?",
        f"The result of {written}?", f"What is the result of {written}?", f"Do you know {written}?", f"I need {written}.", f"Work out {written}.",
        f"What do I get for {written}?", f"Solve {written}.", f"What comes out of {written}?", f"{written} equals?", f"What does {written} equal?",
        f"and {written}?", f"{written} please", f"Quick: {written}?", f"I want to know how much {written} is.",
    ]
    thing = r.choice("apples coins books stones eggs euros dollars cakes pens cards flowers balls nuts cups".split())
    if sign == "+":
        ways += [
            f"Add {a} and {b}.", f"add {a} to {b}", f"What is the sum of {a} and {b}?", f"{a} and {b} together?", f"How much are {a} and {b}?", f"{a} and {b} makes?",
            f"What do {a} and {b} make?", f"I have {a} {thing} and get {b} more. How many do I have?", f"{a} {thing} and {b} {thing}, how many {thing} are that?",
            f"I have {a} {thing} and buy {b} more: {a} + {b}?", f"There are {a} {thing}, and {b} more come. How many are there?", f"If I add {b} to {a}, what do I get?",
            f"Sum of {a} and {b}?", f"How many are {a} and {b}?", f"the total of {a} and {b}",
        ]
    if sign == "-":
        ways += [
            f"Subtract {b} from {a}.", f"What is the difference between {a} and {b}?", f"Take {b} away from {a}.", f"What is left of {a} when I take {b} away?",
            f"I have {a} {thing} and give {b} away. How many are left?", f"What is left of {a} minus {b}?", f"{a} take away {b}?", f"{a} less {b}?",
            f"I had {a} {thing} and lost {b}: {a} - {b}?", f"How many are left if I take {b} from {a}?", f"{b} from {a}?", f"How much is left of {a} - {b}?",
        ]
    if sign == "*":
        ways += [
            f"Multiply {a} by {b}.", f"multiply {a} and {b}", f"What is the product of {a} and {b}?", f"{a} times {b} makes?", f"How much makes {a} times {b}?",
            f"{a} boxes with {b} {thing} each, how many {thing}?", f"What makes {a} times {b}?",
        ]
    if sign == "/":
        ways += [f"Divide {a} by {b}.", f"divide {a} by {b}", f"How often does {b} go into {a}?", f"What is {a} over {b}?"]
    return r.choice(ways)
