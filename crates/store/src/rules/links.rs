//! Writing relations between objects.

use super::statements::Held;
use super::work::Work;
use crate::StoreError;
use crate::cell::cells;
use kittiwake_model::{Link, LinkTable, List, Name};

/// Kind, from, to and more; says whether it was new.
pub(crate) const INSERT_LINK: &str =
    "INSERT INTO links(kind, from_key, to_key, at_us, first_seen_us, last_seen_us)
     VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO NOTHING";
/// The same, where there is one already. The earliest beginning is kept, so that the order of arrival
/// does not matter.
pub(crate) const WIDEN_LINK: &str = "UPDATE links SET
       at_us = min(coalesce(at_us, ?4), coalesce(?4, at_us)),
       first_seen_us = min(first_seen_us, ?5),
       last_seen_us = max(last_seen_us, ?5)
     WHERE from_key = ?2 AND kind = ?1 AND to_key = ?3
       AND (?5 < first_seen_us OR ?5 > last_seen_us
            OR (CAST(?4 AS BIGINT) IS NOT NULL AND (at_us IS NULL OR ?4 < at_us)))";

impl<'a> Work<'a> {
    /// Writes all links of a commit; `objects` are the keys of its objects.
    pub(super) fn write_links(
        &mut self,
        links: &'a [Link],
        objects: &[i64],
    ) -> Result<(), StoreError> {
        // Resolving an end may merge keys, so all ends are resolved before the first is used.
        let mut ends = Vec::with_capacity(links.len());
        for link in links {
            let from = self.key_of(&link.from, objects)?;
            let to = self.key_of(&link.to, objects)?;
            ends.push((from, to));
        }
        for (link, (from, to)) in links.iter().zip(ends) {
            let (from, to) = (self.memory.follow(from), self.memory.follow(to));
            self.write_link_between(link, from, to)?;
        }
        Ok(())
    }

    /// Writes one link whose ends are known.
    pub(super) fn write_link_between(
        &mut self,
        link: &Link,
        from: i64,
        to: i64,
    ) -> Result<(), StoreError> {
        match link.table {
            LinkTable::UserRelations if from == to => Ok(()),
            LinkTable::UserRelations => {
                self.write_relation(from, to, link)?;
                self.hand_along(from, to)
            }
            LinkTable::UserTags => self.write_user_tag(from, to, &link.kind),
            LinkTable::Links => {
                self.write_link(from, to, link)?;
                self.link_shows(&link.kind, from, to)
            }
        }
    }

    fn write_relation(&mut self, source: i64, target: i64, link: &Link) -> Result<(), StoreError> {
        let at_us = self.at_us();
        let walk_of = |list: List| {
            link.walk
                .filter(|walk| walk.list == list)
                .map(|walk| walk.number)
        };
        let (following_walk, followers_walk) = (walk_of(List::Following), walk_of(List::Followers));
        let inserted = self.execute(
            Held::InsertRelation,
            cells![source, target, at_us, following_walk, followers_walk],
        )?;
        if inserted == 1 {
            return self.restore_relation(source, target);
        }
        self.send(
            "UPDATE user_relations SET
               first_seen_us = min(first_seen_us, ?3),
               last_seen_us = max(last_seen_us, ?3),
               following_walk = max(coalesce(following_walk, ?4), coalesce(?4, following_walk)),
               followers_walk = max(coalesce(followers_walk, ?5), coalesce(?5, followers_walk))
             WHERE source = ?1 AND target = ?2
               AND (?3 < first_seen_us OR ?3 > last_seen_us
                    OR (CAST(?4 AS BIGINT) IS NOT NULL AND ?4 > coalesce(following_walk, 0))
                    OR (CAST(?5 AS BIGINT) IS NOT NULL AND ?5 > coalesce(followers_walk, 0)))",
            cells![source, target, at_us, following_walk, followers_walk],
        )?;
        Ok(())
    }

    /// A relation was stored. If it had vanished it is back, with the time of its first sight,
    /// unless it was seen before the walk that no longer showed it and only comes in late.
    fn restore_relation(&mut self, source: i64, target: i64) -> Result<(), StoreError> {
        let vanished_us: Option<i64> =
            self.database
                .first(Held::SelectVanished, cells![source, target], |row| {
                    row.get(0)
                })?;
        let at_us = self.at_us();
        if vanished_us.is_some_and(|vanished_us| at_us < vanished_us) {
            self.send(
                "UPDATE invalid_relations SET first_seen_us = min(first_seen_us, ?3),
                                              last_seen_us = max(last_seen_us, ?3)
                 WHERE source = ?1 AND target = ?2",
                cells![source, target, at_us],
            )?;
            self.send(
                "DELETE FROM user_relations WHERE source = ?1 AND target = ?2",
                cells![source, target],
            )?;
            return Ok(());
        }
        self.report.rows_new += 1;
        self.found.new_relation(source, target);
        if vanished_us.is_none() {
            return Ok(());
        }
        self.send(
            "UPDATE user_relations SET
               first_seen_us = min(first_seen_us, coalesce(
                 (SELECT gone.first_seen_us FROM invalid_relations AS gone
                  WHERE gone.source = ?1 AND gone.target = ?2), first_seen_us))
             WHERE source = ?1 AND target = ?2",
            cells![source, target],
        )?;
        self.send(
            "DELETE FROM invalid_relations WHERE source = ?1 AND target = ?2",
            cells![source, target],
        )?;
        Ok(())
    }

    fn write_user_tag(&mut self, user: i64, tag: i64, kind: &Name) -> Result<(), StoreError> {
        let at_us = self.at_us();
        let inserted = self.execute(
            "INSERT INTO user_tags(\"user\", tag, first_seen_us, last_seen_us)
             VALUES (?1, ?2, ?3, ?3) ON CONFLICT DO NOTHING",
            cells![user, tag, at_us],
        )?;
        self.report.rows_new += inserted as u32;
        if inserted > 0 {
            self.found.new_link(kind, user, tag);
        } else {
            self.send(
                "UPDATE user_tags SET first_seen_us = min(first_seen_us, ?3),
                                      last_seen_us = max(last_seen_us, ?3)
                 WHERE \"user\" = ?1 AND tag = ?2 AND (?3 < first_seen_us OR ?3 > last_seen_us)",
                cells![user, tag, at_us],
            )?;
        }
        Ok(())
    }

    fn write_link(&mut self, from: i64, to: i64, link: &Link) -> Result<(), StoreError> {
        let seen_us = self.at_us();
        let began_us = link.at.map(|at| at.0);
        let cells = cells![&*link.kind, from, to, began_us, seen_us];
        let inserted = self.execute(INSERT_LINK, cells)?;
        self.report.rows_new += inserted as u32;
        if inserted > 0 {
            self.found.new_link(&link.kind, from, to);
        } else {
            self.send(WIDEN_LINK, cells)?;
        }
        Ok(())
    }
}
