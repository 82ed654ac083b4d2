//! Every key that a definition may hold, by section. `docs/definition-format.md` explains each.

pub(super) const TOP: &[&str] = &[
    "format",
    "name",
    "title",
    "description",
    "verified_on",
    "proved",
    "proof",
    "access",
    "sources",
    "host",
    "hosts",
    "probe",
    "auth",
    "limit_headers",
    "limit_status",
    "budgets",
    "politeness",
    "blocks",
    "robots_txt",
    "types",
    "queries",
    "robots",
    "seeds",
    "errors",
];
pub(super) const HOST: &[&str] = &["kind", "address", "type", "others", "user_agent"];
pub(super) const NAMED_HOST: &[&str] = &["address", "credential"];
pub(super) const PROBE: &[&str] = &["queries", "again_after", "capabilities"];
pub(super) const AUTH: &[&str] = &["methods", "pooling"];
pub(super) const AUTH_METHOD: &[&str] = &[
    "kind",
    "description",
    "send",
    "proof",
    "scopes",
    "variables",
    "hosts",
    "page",
    "test",
    "authorize",
    "device",
    "token",
    "client_auth",
    "register",
    "paste_redirect",
    "create",
    "refresh",
    "parameters",
    "answer",
    "form",
];
pub(super) const AUTH_SEND: &[&str] = &["header", "query"];
pub(super) const AUTH_PROOF: &[&str] = &["parameter", "variables"];
pub(super) const AUTH_REGISTER: &[&str] = &["path", "parameters"];
pub(super) const AUTH_ANSWER: &[&str] = &["access", "refresh", "account"];
pub(super) const AUTH_FORM: &[&str] = &["page", "css", "identifier", "password", "cookies"];
pub(super) const AUTH_TEST: &[&str] = &["path", "account", "scopes_header"];
pub(super) const LIMIT_HEADERS: &[&str] = &[
    "limit",
    "remaining",
    "used",
    "percent",
    "percent_keys",
    "minutes_key",
    "reset",
    "reset_format",
];
pub(super) const LIMIT_STATUS: &[&str] = &["path", "authenticated", "charged_to", "budgets"];
pub(super) const LIMIT_STATUS_BUDGET: &[&str] = &["limit", "remaining", "reset", "reset_format"];
pub(super) const BUDGET: &[&str] = &[
    "scope",
    "each",
    "unit",
    "limit",
    "window",
    "kind",
    "time_zone",
    "authenticated",
    "any_parameter",
    "headers",
    "prices",
    "free_again",
    "source",
];
pub(super) const COST: &[&str] = &["call", "item", "beside"];
pub(super) const POLITENESS: &[&str] = &["start", "most"];
pub(super) const BLOCK: &[&str] = &["status", "text", "css", "redirect", "reason"];
pub(super) const ROBOTS_TXT: &[&str] = &["obey", "again_after"];
pub(super) const TYPE: &[&str] = &[
    "table",
    "resolve",
    "home",
    "canonical",
    "within",
    "aliases",
    "states",
    "fields",
    "links",
    "ignored",
    "shapes",
];
pub(super) const SHAPE: &[&str] = &[
    "canonical",
    "aliases",
    "present",
    "states",
    "fields",
    "links",
    "ignored",
];
pub(super) const STATE: &[&str] = &["path", "keeps"];
pub(super) const ALIAS: &[&str] = &["path", "scope", "movable", "qualify"];
pub(super) const ALIAS_SCOPE: &[&str] = &["host"];
pub(super) const FIELD: &[&str] = &[
    "path",
    "kind",
    "format",
    "epoch_ms",
    "shift_bits",
    "qualify",
    "type",
    "shape",
    "alias",
    "link",
    "at",
];
pub(super) const LINK: &[&str] = &["path", "type", "shape", "alias", "table", "at"];
pub(super) const IGNORED: &[&str] = &["path", "reason"];
pub(super) const QUERY: &[&str] = &[
    "description",
    "subject",
    "host",
    "needs",
    "proof",
    "method",
    "body",
    "graphql",
    "path",
    "decode",
    "html",
    "bytes_max",
    "parameters",
    "batch",
    "expands",
    "page",
    "incremental",
    "conditional",
    "pages_max",
    "list",
    "auth",
    "scope",
    "budgets",
    "costs",
    "selects",
    "ignored",
    "source",
];
pub(super) const HTML: &[&str] = &[
    "css",
    "within",
    "take",
    "attribute",
    "address",
    "without",
    "sorted",
    "here",
    "all",
    "each",
    "subject",
    "optional",
];
pub(super) const QUERY_HOST: &[&str] = &["alias"];
pub(super) const EXPANDS: &[&str] = &["parameter", "style", "max"];
pub(super) const BATCH: &[&str] = &["parameter", "style", "alias", "max", "missing"];
pub(super) const PAGE: &[&str] = &[
    "style",
    "at",
    "more",
    "parameter",
    "last",
    "first",
    "alias",
    "bound",
    "size_parameter",
    "size",
    "size_min",
    "ends",
    "items_max",
    "order",
    "durable",
    "other_paths",
    "together",
];
pub(super) const INCREMENTAL: &[&str] = &[
    "parameter",
    "alias",
    "short_page_ends",
    "until",
    "time",
    "format",
    "overlap",
];
pub(super) const SELECT: &[&str] = &[
    "at",
    "only",
    "descend",
    "item",
    "as",
    "shape",
    "alias",
    "is_subject",
    "fills",
    "link",
    "price",
    "stubs",
];
pub(super) const STUBS: &[&str] = &["ids", "query"];
pub(super) const SELECT_LINK: &[&str] = &["kind", "from", "to", "table", "at"];
pub(super) const ROBOT: &[&str] = &[
    "name",
    "title",
    "description",
    "subject",
    "steps",
    "needs",
    "optional",
    "unless_zero",
    "names_parents",
    "begins_visited",
    "visited_when_zero",
    "revisit_after",
    "repost_steps",
    "reply_steps",
    "brings",
];
pub(super) const STEP: &[&str] = &["query", "or", "follow", "backfill"];
pub(super) const BACKFILL: &[&str] = &["query", "count"];
pub(super) const SEED: &[&str] = &["pattern", "type", "alias", "value"];
pub(super) const ERROR: &[&str] = &[
    "status", "match", "css", "header", "redirect", "outcome", "reason", "subject", "query",
    "budget", "wait",
];

/// Every section and its keys, for documentation and for editors.
pub fn known_keys() -> &'static [(&'static str, &'static [&'static str])] {
    &[
        ("top", TOP),
        ("host", HOST),
        ("hosts.NAME", NAMED_HOST),
        ("probe", PROBE),
        ("auth", AUTH),
        ("auth.methods.NAME", AUTH_METHOD),
        ("auth.methods.NAME.send", AUTH_SEND),
        ("auth.methods.NAME.proof", AUTH_PROOF),
        ("auth.methods.NAME.register", AUTH_REGISTER),
        ("auth.methods.NAME.answer", AUTH_ANSWER),
        ("auth.methods.NAME.form", AUTH_FORM),
        ("auth.methods.NAME.test", AUTH_TEST),
        ("limit_headers", LIMIT_HEADERS),
        ("limit_status", LIMIT_STATUS),
        ("limit_status.budgets.NAME", LIMIT_STATUS_BUDGET),
        ("budgets.NAME", BUDGET),
        ("budgets.NAME.headers", LIMIT_HEADERS),
        ("politeness", POLITENESS),
        ("blocks", BLOCK),
        ("robots_txt", ROBOTS_TXT),
        ("types.NAME", TYPE),
        ("types.NAME.shapes.NAME", SHAPE),
        ("types.NAME.states.NAME", STATE),
        ("types.NAME.aliases.NAME", ALIAS),
        ("types.NAME.aliases.NAME.scope", ALIAS_SCOPE),
        ("types.NAME.fields.GROUP.NAME", FIELD),
        ("types.NAME.links.KIND", LINK),
        ("types.NAME.ignored", IGNORED),
        ("queries.NAME", QUERY),
        ("queries.NAME.html.NAME", HTML),
        ("queries.NAME.host", QUERY_HOST),
        ("queries.NAME.costs.BUDGET", COST),
        ("queries.NAME.batch", BATCH),
        ("queries.NAME.expands", EXPANDS),
        ("queries.NAME.page", PAGE),
        ("queries.NAME.incremental", INCREMENTAL),
        ("queries.NAME.selects", SELECT),
        ("queries.NAME.selects.link", SELECT_LINK),
        ("queries.NAME.selects.stubs", STUBS),
        ("robots", ROBOT),
        ("robots.steps", STEP),
        ("robots.steps.backfill", BACKFILL),
        ("seeds", SEED),
        ("errors", ERROR),
    ]
}
