"""Sums as people ask for them: numbers up to 100, with signs or in words."""

MOST = 100      # of a number in a sum or difference


def calculation(r):
    """-> a, b, sign, word, value: sums and differences of numbers up to 100, products to 10 x 10, quotients of these"""
    q = r.random()
    most = MOST if r.random() < 0.85 else 20
    a, b = r.randint(0, most), r.randint(0, most)
    if q < 0.5:
        return a, b, "+", "plus", a + b
    if q < 0.84:
        return max(a, b), min(a, b), "-", "minus", abs(a - b)
    a, b = r.randint(0, 10), r.randint(0, 10)
    if q < 0.95 or b == 0:
        return a, b, "*", "times", a * b
    return a * b, b, "/", "divided by", a


def question(r, a, b, sign, word):
    """With signs or words, and as people type it."""
    if r.random() < 0.5:
        space = " " if r.random() < 0.7 else ""
        written = f"{a}{space}{r.choice(['*', 'x', '×']) if sign == '*' else sign}{space}{b}"
    else:
        written = f"{a} {word} {b}"
    ways = [
        f"What is {written}?", f"What is {written}?", f"what is {written}", f"what's {written}", f"What's {written}?", f"{written} = ?",
        f"{written}=", f"{written}", f"{written}?", f"Calculate {written}.", f"calculate {written}", f"How much is {written}?", f"how much is {written}",
        f"Compute {written}.", f"Can you tell me what {written} is?", f"Tell me {written}.", f"please calculate {written}",
    ]
    if sign == "+":
        ways += [f"Add {a} and {b}.", f"add {a} to {b}", f"What is the sum of {a} and {b}?", f"{a} and {b} together?", f"How much are {a} and {b}?"]
    if sign == "-":
        ways += [f"Subtract {b} from {a}.", f"What is the difference between {a} and {b}?", f"Take {b} away from {a}."]
    if sign == "*":
        ways += [f"Multiply {a} by {b}.", f"multiply {a} and {b}"]
    return r.choice(ways)
