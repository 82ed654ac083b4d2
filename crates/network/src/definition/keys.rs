//! Every key that a definition may hold, by section. `docs/definition-format.md` explains each.

pub(super) const TOP: &[&str] = &[
    "format",
    "name",
    "title",
    "description",
    "verified_on",
    "sources",
    "host",
    "auth",
    "limit_headers",
    "limit_status",
    "budgets",
    "politeness",
    "blocks",
    "types",
    "queries",
    "robots",
    "seeds",
    "errors",
];
pub(super) const HOST: &[&str] = &["kind", "address", "type", "user_agent"];
pub(super) const AUTH: &[&str] = &["methods", "pooling"];
pub(super) const AUTH_METHOD: &[&str] = &[
    "kind",
    "description",
    "send",
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
];
pub(super) const AUTH_SEND: &[&str] = &["header", "query"];
pub(super) const AUTH_REGISTER: &[&str] = &["path", "parameters"];
pub(super) const AUTH_ANSWER: &[&str] = &["access", "refresh", "account"];
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
    "source",
];
pub(super) const COST: &[&str] = &["call", "item"];
pub(super) const POLITENESS: &[&str] = &["start", "most"];
pub(super) const BLOCK: &[&str] = &["status", "text", "redirect", "reason"];
pub(super) const TYPE: &[&str] = &[
    "table",
    "resolve",
    "home",
    "canonical",
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
    "states",
    "fields",
    "links",
    "ignored",
];
pub(super) const ALIAS: &[&str] = &["path", "scope", "movable", "qualify"];
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
    "method",
    "body",
    "graphql",
    "path",
    "decode",
    "parameters",
    "batch",
    "page",
    "incremental",
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
pub(super) const BATCH: &[&str] = &["parameter", "style", "alias", "max"];
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
    "ends",
    "items_max",
    "order",
    "durable",
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
pub(super) const SELECT: &[&str] = &["at", "as", "shape", "alias", "is_subject", "link"];
pub(super) const SELECT_LINK: &[&str] = &["kind", "from", "to", "table"];
pub(super) const ROBOT: &[&str] = &[
    "name",
    "title",
    "description",
    "subject",
    "steps",
    "needs",
    "optional",
    "unless_zero",
    "begins_visited",
    "revisit_after",
    "repost_steps",
    "brings",
];
pub(super) const STEP: &[&str] = &["query", "or", "follow"];
pub(super) const SEED: &[&str] = &["pattern", "type", "alias", "value"];
pub(super) const ERROR: &[&str] = &["status", "match", "outcome", "reason", "subject", "query"];

/// Every section and its keys, for documentation and for editors.
pub fn known_keys() -> &'static [(&'static str, &'static [&'static str])] {
    &[
        ("top", TOP),
        ("host", HOST),
        ("auth", AUTH),
        ("auth.methods.NAME", AUTH_METHOD),
        ("auth.methods.NAME.send", AUTH_SEND),
        ("auth.methods.NAME.register", AUTH_REGISTER),
        ("auth.methods.NAME.answer", AUTH_ANSWER),
        ("auth.methods.NAME.test", AUTH_TEST),
        ("limit_headers", LIMIT_HEADERS),
        ("limit_status", LIMIT_STATUS),
        ("limit_status.budgets.NAME", LIMIT_STATUS_BUDGET),
        ("budgets.NAME", BUDGET),
        ("budgets.NAME.headers", LIMIT_HEADERS),
        ("politeness", POLITENESS),
        ("blocks", BLOCK),
        ("types.NAME", TYPE),
        ("types.NAME.shapes.NAME", SHAPE),
        ("types.NAME.aliases.NAME", ALIAS),
        ("types.NAME.fields.GROUP.NAME", FIELD),
        ("types.NAME.links.KIND", LINK),
        ("types.NAME.ignored", IGNORED),
        ("queries.NAME", QUERY),
        ("queries.NAME.costs.BUDGET", COST),
        ("queries.NAME.batch", BATCH),
        ("queries.NAME.page", PAGE),
        ("queries.NAME.incremental", INCREMENTAL),
        ("queries.NAME.selects", SELECT),
        ("queries.NAME.selects.link", SELECT_LINK),
        ("robots", ROBOT),
        ("robots.steps", STEP),
        ("seeds", SEED),
        ("errors", ERROR),
    ]
}
