"""Who the synthesiser imitates: the eight named voices, other speakers that teach the style encoder, and those that it never hears."""

# Named voice -> espeak-ng voice, its pitch (0 to 99). a: American, b: British.
NAMED = {
    "af_bella": ("en-us+f2", 45), "af_sarah": ("en-us+Annie", 60), "am_adam": ("en-us+m3", 25), "am_michael": ("en-us+max", 65),
    "bf_emma": ("en+f5", 40), "bf_isabella": ("en+linda", 55), "bm_george": ("en+m8", 35), "bm_lewis": ("en+m7", 62),
}
# Variants that get an accent and a pitch by chance.
OTHERS = (
    "f3 f4 belinda anika shelby Alicia Andrea grandma m1 m2 m5 m6 adam Mario Storm grandpa Jacky Denis quincy rob victor paul iven Hugo "
    "boris Alex Mike travis f2 Annie f5 linda m3 m7 m8 max"
).split()
# (voice, pitch): never trained, imitation is tested on them.
UNSEEN = [
    ("en-us+f1", 50), ("en-us+m4", 30), ("en-us+aunty", 65), ("en-us+Lee", 45), ("en-us+steph", 60),
    ("en+f1", 30), ("en+m4", 55), ("en+aunty", 40), ("en+Lee", 20), ("en+steph", 75),
]
