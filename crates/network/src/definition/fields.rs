//! `[types.….fields.…]`: what is kept of an object.

use super::source::{Placed, Section};
use super::types::{Types, read_at, read_pick, read_target};
use super::{keys, named_sections};
use crate::path::parse_chain;
use crate::shape::{
    FieldKind, FieldRule, FieldSource, GroupRule, Pick, ReadDepth, ReferenceRule, TreeBuilder, Way,
};
use crate::time::{TimeFormat, is_pattern};
use kittiwake_model::{ColumnKind, Table};
use std::ops::Range;

pub(super) fn read_groups(
    section: &Section<'_, '_>,
    types: &Types,
    table: Option<Table>,
    builder: &mut TreeBuilder,
) -> Vec<GroupRule> {
    let Some(fields) = section.table("fields") else {
        return Vec::new();
    };
    let mut groups: Vec<GroupRule> = Vec::new();
    for (name, _, group) in named_sections(section, "fields") {
        let mut rules = Vec::new();
        for entry in group.entries() {
            let is_known = groups
                .iter()
                .flat_map(|group| &group.fields)
                .any(|field| *field.name == *entry.name);
            if is_known {
                let message = format!("the field `{}` is in two groups", entry.name);
                fields.report(&entry.span, message, "keep it in one");
            }
            let shorthand = entry.text.as_ref();
            let field = Field {
                name: &entry.name,
                span: &entry.span,
                section: entry.section.as_ref(),
                shorthand,
                group: &group,
                is_table_known: table.is_some(),
                column: table
                    .and_then(|table| table.column(&entry.name))
                    .map(|column| column.kind),
            };
            rules.extend(field.read(types, builder));
        }
        groups.push(GroupRule {
            name,
            fields: rules,
        });
    }
    groups
}

/// One field as it is being read.
struct Field<'a, 's, 't> {
    name: &'a str,
    span: &'a Range<usize>,
    section: Option<&'a Section<'s, 't>>,
    shorthand: Option<&'a Placed<String>>,
    group: &'a Section<'s, 't>,
    is_table_known: bool,
    /// What the table's column of this name holds, if there is one.
    column: Option<ColumnKind>,
}

impl Field<'_, '_, '_> {
    fn read(&self, types: &Types, builder: &mut TreeBuilder) -> Option<FieldRule> {
        let rule = |source| FieldRule {
            name: self.name.into(),
            source,
        };
        let source = match (self.shorthand, self.section) {
            (Some(text), _) => FieldSource::Value(vec![self.read_value(text, builder)?]),
            (None, Some(section)) if section.has("type") => {
                section.expect_keys(keys::FIELD);
                let way = self.read_reference(section, types, builder)?;
                FieldSource::Reference(vec![way])
            }
            (None, Some(section)) => {
                section.expect_keys(keys::FIELD);
                let path = section.need_text("path", "path = \".name\"")?;
                FieldSource::Value(vec![self.read_value(&path, builder)?])
            }
            (None, None) if self.group.is_list(self.name) => self.read_ways(types, builder)?,
            (None, None) => {
                let message = format!("the field `{}` must be a path or a table", self.name);
                let help = format!(
                    "write `{} = {{ path = \".x\", kind = \"text\" }}`",
                    self.name
                );
                self.group.report(self.span, message, help);
                return None;
            }
        };
        Some(rule(source))
    }

    fn read_value(
        &self,
        path: &Placed<String>,
        builder: &mut TreeBuilder,
    ) -> Option<(Pick, FieldKind)> {
        let kind = self.kind()?;
        let depth = match kind {
            FieldKind::Json => ReadDepth::Whole,
            _ => ReadDepth::Value,
        };
        let pick = read_pick(self.group, builder, path, depth)?;
        self.check_column(&kind);
        Some((pick, kind))
    }

    /// A list of ways: to another object, of which each may lead to another type, or to a value, of
    /// which each may be of another kind.
    fn read_ways(&self, types: &Types, builder: &mut TreeBuilder) -> Option<FieldSource> {
        let sections = self.group.tables(self.name);
        let leads_to_objects = sections.iter().any(|section| section.has("type"));
        let (mut references, mut values) = (Vec::new(), Vec::new());
        for section in &sections {
            section.expect_keys(keys::FIELD);
            if leads_to_objects {
                references.extend(self.read_reference(section, types, builder));
                continue;
            }
            let way = Field {
                section: Some(section),
                ..*self
            };
            let path = section.need_text("path", "path = \".name\"");
            values.extend(path.and_then(|path| way.read_value(&path, builder)));
        }
        if leads_to_objects {
            return (!references.is_empty()).then_some(FieldSource::Reference(references));
        }
        (!values.is_empty()).then_some(FieldSource::Value(values))
    }

    fn kind(&self) -> Option<FieldKind> {
        let section = self.section;
        self.refuse_reference_keys();
        let word = section.and_then(|section| section.text("kind"));
        let word = word
            .map(|word| word.value)
            .or_else(|| self.column.map(word_of_column));
        let Some(word) = word else {
            // With a table that is not there, one report is enough.
            if !self.is_table_known {
                return None;
            }
            let message = format!(
                "`{}` is no column, so that its kind is not known",
                self.name
            );
            let help = format!(
                "write `{} = {{ path = \"…\", kind = \"text\" }}` with one of {}",
                self.name,
                KINDS.join(", ")
            );
            self.group.report(self.span, message, help);
            return None;
        };
        let is_qualified = section
            .and_then(|section| section.boolean("qualify"))
            .unwrap_or(false);
        let kind = match word.as_str() {
            "text" => FieldKind::Text { is_qualified },
            "html" => FieldKind::Html,
            "address" => FieldKind::Address,
            "int" => FieldKind::Int,
            "float" => FieldKind::Float,
            "bool" => FieldKind::Bool,
            "json" => FieldKind::Json,
            "time" => FieldKind::Time(self.time_format()),
            "reference" => {
                let message = format!("`{}` is another object", self.name);
                let help = format!("write `{} = {{ path = \"…\", type = \"…\" }}`", self.name);
                self.group.report(self.span, message, help);
                return None;
            }
            _ => {
                let section = section?;
                let text = section.text("kind")?;
                section.unknown_word(&text, "`kind`", KINDS);
                return None;
            }
        };
        if !matches!(kind, FieldKind::Time(_)) {
            self.refuse_time_keys();
        }
        Some(kind)
    }

    fn refuse_time_keys(&self) {
        let Some(section) = self.section else { return };
        for key in ["format", "epoch_ms", "shift_bits"] {
            if section.has(key) {
                let message = format!("`{key}` is for times only");
                let help = "write `kind = \"time\"`, or leave it out";
                section.report(&section.span_of(key), message, help);
            }
        }
    }

    fn refuse_reference_keys(&self) {
        let Some(section) = self.section else { return };
        for key in ["shape", "alias", "link", "at"] {
            if section.has(key) {
                let message = format!("`{key}` has no meaning without `type`");
                let help = "write `type = \"…\"`, or leave it out";
                section.report(&section.span_of(key), message, help);
            }
        }
    }

    fn time_format(&self) -> TimeFormat {
        self.section.map_or(TimeFormat::Rfc3339, time_format)
    }

    fn check_column(&self, kind: &FieldKind) {
        let Some(column) = self.column else { return };
        let is_fit = matches!(
            (column, kind),
            (
                ColumnKind::Text,
                FieldKind::Text { .. } | FieldKind::Html | FieldKind::Address
            ) | (ColumnKind::Integer, FieldKind::Int)
                | (ColumnKind::Real, FieldKind::Float | FieldKind::Int)
                | (ColumnKind::Boolean, FieldKind::Bool)
                | (ColumnKind::Time, FieldKind::Time(_))
                | (ColumnKind::Json, FieldKind::Json)
        );
        if !is_fit {
            let word = word_of_column(column);
            let message = format!("the column `{}` holds {word}", self.name);
            let help = format!("write `kind = \"{word}\"`, or give the field another name");
            let span = self
                .section
                .map_or(self.span.clone(), |section| section.span_of("kind"));
            self.group.report(&span, message, help);
        }
    }

    /// One way to another object.
    fn read_reference(
        &self,
        section: &Section<'_, '_>,
        types: &Types,
        builder: &mut TreeBuilder,
    ) -> Option<(Way, ReferenceRule)> {
        let path = section.need_text("path", "path = \".account\"")?;
        for key in ["kind", "format", "epoch_ms", "shift_bits", "qualify"] {
            if section.has(key) {
                let message = format!("`{key}` has no meaning beside `type`");
                section.report(&section.span_of(key), message, "leave one of them out");
            }
        }
        let mut target = read_target(section, types)?;
        target.link = section.text("link").map(|link| link.value.into());
        target.link_at = read_at(section, builder);
        self.check_target(section, types, &target);
        let way = Self::read_way(section, &path, &target, builder)?;
        Some((way, target))
    }

    /// The column has to fit, and refer to the table of the other type.
    fn check_target(&self, section: &Section<'_, '_>, types: &Types, target: &ReferenceRule) {
        let (message, help) = match self.column {
            None => return,
            Some(ColumnKind::Reference(table)) => {
                let outline = types.outline(&target.kind);
                let other = outline.and_then(|outline| outline.table);
                if other.is_none_or(|other| other == table) {
                    return;
                }
                (
                    format!("the column `{}` refers to {}", self.name, table.name()),
                    format!("use a type whose `table` is `{}`", table.name()),
                )
            }
            Some(column) => {
                let word = word_of_column(column);
                (
                    format!("the column `{}` holds {word}", self.name),
                    format!("write `kind = \"{word}\"`, or give the field another name"),
                )
            }
        };
        section.report(&section.span_of("type"), message, help);
    }

    /// A plain path to an object or to an id; where `alias` says what it means, an expression that
    /// makes an id; or the subject.
    fn read_way(
        section: &Section<'_, '_>,
        path: &Placed<String>,
        target: &ReferenceRule,
        builder: &mut TreeBuilder,
    ) -> Option<Way> {
        if path.value == SUBJECT {
            return Some(Way::Subject);
        }
        let Some(chain) = parse_chain(&path.value) else {
            if target.alias.is_none() {
                let message = format!("`{}` is no plain path to one object", path.value);
                let help = "write for example `.account`, or `alias` if it makes an id";
                section.report(&path.span, message, help);
                return None;
            }
            return read_pick(section, builder, path, ReadDepth::Value).map(Way::Told);
        };
        let mut paths = chain.paths.iter();
        if !paths.all(|path| !path.each && !path.keys.is_empty()) {
            let message = format!("`{}` is no plain path to one object", path.value);
            let help = "write for example `.account`, or `.a // .b`";
            section.report(&path.span, message, help);
            return None;
        }
        let pick = builder.pick_paths(&chain, ReadDepth::Shape(target.shape));
        Some(Way::Told(pick))
    }
}

/// What stands in place of a path where the other object is what was asked about.
pub(super) const SUBJECT: &str = "$subject";

/// One format of times. A mistake in it is reported, and the usual one is taken.
fn read_time_format(section: &Section<'_, '_>, text: &Placed<String>) -> TimeFormat {
    let format = TimeFormat::from_definition(&text.value);
    let is_sound = match &format {
        Some(TimeFormat::Pattern(pattern)) => is_pattern(pattern),
        Some(TimeFormat::Snowflake { .. }) => return read_snowflake(section),
        other => other.is_some(),
    };
    if !is_sound {
        let message = format!("`{}` is no format of times", text.value);
        let help = format!(
            "it is one of {}, or a pattern such as `%a %b %d %H:%M:%S %z %Y`",
            TimeFormat::WORDS.join(", ")
        );
        section.report(&text.span, message, help);
    }
    format.unwrap_or(TimeFormat::Rfc3339)
}

fn read_snowflake(section: &Section<'_, '_>) -> TimeFormat {
    /// No network began before 1970, or after the year 5000.
    const EPOCH_MS_MAX: i64 = 95_617_584_000_000;
    if !section.has("shift_bits") {
        section.missing("shift_bits", "shift_bits = 22");
    }
    TimeFormat::Snowflake {
        epoch_ms: section
            .long_number("epoch_ms", 0..=EPOCH_MS_MAX)
            .unwrap_or(0),
        shift_bits: section.number("shift_bits", 1..=63).unwrap_or(1),
    }
}

const KINDS: &[&str] = &[
    "text", "html", "address", "time", "int", "float", "bool", "json",
];

fn word_of_column(column: ColumnKind) -> String {
    match column {
        ColumnKind::Text => "text",
        ColumnKind::Integer => "int",
        ColumnKind::Real => "float",
        ColumnKind::Boolean => "bool",
        ColumnKind::Time => "time",
        ColumnKind::Json => "json",
        ColumnKind::Reference(_) => "reference",
    }
    .to_owned()
}

/// How times are written, as `format` says.
pub(super) fn time_format(section: &Section<'_, '_>) -> TimeFormat {
    let texts = section.texts("format").unwrap_or_default();
    let mut formats: Vec<TimeFormat> = texts
        .iter()
        .map(|text| read_time_format(section, text))
        .collect();
    let is_flake = |format: &TimeFormat| matches!(format, TimeFormat::Snowflake { .. });
    if !formats.iter().any(is_flake) {
        for key in ["epoch_ms", "shift_bits"] {
            if section.has(key) {
                let message = format!("`{key}` is for snowflakes only");
                let help = "write `format = \"snowflake\"`, or leave it out";
                section.report(&section.span_of(key), message, help);
            }
        }
    }
    match formats.len() {
        0 => TimeFormat::Rfc3339,
        1 => formats.remove(0),
        _ => TimeFormat::Several(formats),
    }
}
