//! The words the world is written in. Some need escaping, some are not Latin: readers must cope.

pub(crate) const ADJECTIVES: &[&str] = &[
    "amber", "bold", "calm", "dusty", "eager", "faint", "gentle", "happy", "icy", "jolly", "keen",
    "late", "mossy", "noisy", "odd", "pale", "quiet", "rusty", "salty", "tidy", "upbeat", "vivid",
    "windy", "young",
];

pub(crate) const NOUNS: &[&str] = &[
    "auk",
    "bittern",
    "curlew",
    "dunlin",
    "eider",
    "fulmar",
    "gannet",
    "heron",
    "ibis",
    "jackdaw",
    "knot",
    "lapwing",
    "merlin",
    "noddy",
    "osprey",
    "puffin",
    "quail",
    "rail",
    "shag",
    "tern",
    "turnstone",
    "whimbrel",
    "wren",
    "yellowhammer",
];

pub(crate) const EMOJI: &[&str] = &["🐦", "🌊", "✨", "☕", "🏳️‍🌈", "👩‍💻", "🇮🇸", "❄️"];

pub(crate) const FIELD_NAMES: &[&str] = &["Website", "Pronouns", "Where", "Code & such", "日記"];

/// The earlier the more used. Names are written as the network writes them, in lower case.
pub(crate) const TAGS: &[&str] = &[
    "birds",
    "photography",
    "rust",
    "opensource",
    "music",
    "caturday",
    "art",
    "books",
    "fediverse",
    "coffee",
    "science",
    "cycling",
    "climate",
    "news",
    "gardening",
    "linux",
    "travel",
    "food",
    "history",
    "poetry",
    "running",
    "maps",
    "space",
    "python",
    "design",
    "games",
    "film",
    "bread",
    "weather",
    "trains",
    "introductions",
    "mastoart",
    "knitting",
    "theatre",
    "philosophy",
    "café",
    "öpnv",
    "fotografía",
    "写真",
    "猫",
    "книги",
    "astronomy",
    "sailing",
    "lighthouse",
    "seabirds",
    "tidepools",
    "migration2026",
    "plover",
    "moss",
    "fog",
];

/// A language and a sentence in it, as HTML.
pub(crate) const SENTENCES: &[(&str, &str)] = &[
    ("en", "The terns are back on the shingle this morning."),
    ("en", "Salt &amp; wind, nothing else for miles."),
    ("en", "I can&#39;t believe how loud one wren can be."),
    (
        "en",
        "If a &lt; b and b &lt; c, somebody still has to prove it.",
    ),
    ("en", "Three loaves today, and only one of them burnt 🍞"),
    (
        "en",
        "Reading a paper about crawlers while the kettle boils.",
    ),
    ("en", "Does anyone else&#39;s train smell of oranges?"),
    ("en", "New post is up; corrections are very welcome."),
    ("en", "It rained sideways, then upwards, then it stopped."),
    (
        "en",
        "\u{201C}Quite\u{201D} is doing a lot of work in that sentence\u{2026}",
    ),
    ("de", "Heute früh standen zwölf Kraniche auf dem Feld."),
    ("de", "Der Zug fährt nicht, der Bus übrigens auch nicht."),
    ("de", "Größe ist nicht alles, sagte die Möwe."),
    ("fr", "Le café est froid mais la vue est belle."),
    ("fr", "Qui a encore caché l&#39;échelle ?"),
    ("es", "Mañana salimos temprano a ver las gaviotas."),
    ("es", "¿Alguien sabe dónde están las llaves del faro?"),
    ("ja", "今朝、港でカモメを百羽も見ました。"),
    ("ja", "猫が窓から海を見ている 🐈"),
    ("ar", "البحر هادئ اليوم والنوارس كثيرة."),
    ("uk", "Чайки знову вкрали мій сніданок."),
    ("pt", "O farol voltou a acender esta noite."),
];

pub(crate) const SPOILERS: &[&str] = &["food", "politics", "spoilers for the last episode", "🕷️"];

pub(crate) const APPLICATIONS: &[(&str, Option<&str>)] = &[
    ("Web", None),
    ("Gull for Phones", Some("https://gull.example/")),
    (
        "Signalbook",
        Some("https://signalbook.example/?from=post&lang=en"),
    ),
];

pub(crate) const MEDIA_TEXTS: &[Option<&str>] = &[
    None,
    Some("A kittiwake on a ledge, looking to the left."),
    Some("Grey sea under a grey sky; \"grey\" does not do it justice."),
];
