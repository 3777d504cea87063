"""Who the synthesiser imitates: the eight named voices, other speakers that teach the style encoder, and those that it never hears."""

# Named voice -> espeak-ng voice, its pitch (0 to 99). a: American, b: British.
NAMED = {
    "af_bella": ("en-us+f2", 45), "af_sarah": ("en-us+Annie", 60), "am_adam": ("en-us+m3", 25), "am_michael": ("en-us+max", 65),
    "bf_emma": ("en+f5", 40), "bf_isabella": ("en+linda", 55), "bm_george": ("en+m8", 35), "bm_lewis": ("en+m7", 62),
}
# Variants that get an accent, a pitch and a length of the throat by chance. Those of UNSEEN are missing, and their sisters (steph2, steph3).
OTHERS = (
    "f2 f3 f4 f5 m1 m2 m3 m5 m6 m7 m8 Alex Alicia Andrea Andy Annie AnxiousAndy Denis Diogo Gene Gene2 Henrique Hugo Jacky Marco Mario "
    "Michael Mike Nguyen RicishayMax RicishayMax2 RicishayMax3 Storm adam anika announcer antonio belinda benjamin boris caleb david ed "
    "edward edward2 grandma grandpa gustave iven iven2 iven3 iven4 john kaukovalta linda marcelo max michel miguel norbert pablo paul "
    "pedro quincy rob robert sandro shelby travis victor zac"
).split()
SHORTEST_THROAT, LONGEST_THROAT = 0.85, 1.18  # against the variant's own
# (voice, pitch): never trained, imitation is tested on them.
UNSEEN = [
    ("en-us+f1", 50), ("en-us+m4", 30), ("en-us+aunty", 65), ("en-us+Lee", 45), ("en-us+steph", 60),
    ("en+f1", 30), ("en+m4", 55), ("en+aunty", 40), ("en+Lee", 20), ("en+steph", 75),
]
