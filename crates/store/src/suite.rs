//! What every back end has to be able to do, as a list of properties.
//!
//! A back end offers a [`Place`] (somewhere to keep one crawl) and names a function that makes
//! fresh ones; [`store_suite!`](crate::store_suite) turns each property into a test of its own.
//! Properties see a store only through [`Store`] and through plain `SELECT`s over the documented
//! tables. Where a property draws at random, it prints its seed when it fails.

#![allow(
    clippy::unwrap_used,
    reason = "a suite is test code that other crates' tests have to reach"
)]

mod browse;
mod build;
mod claims;
mod conversations;
mod crawl;
mod depth;
mod feed;
mod figures;
mod hostile;
mod identity;
mod keys;
mod objects;
mod posts;
mod reach;
mod search;
mod standing;
mod sweeps;

pub use browse::*;
pub use claims::*;
pub use conversations::*;
pub use crawl::*;
pub use depth::*;
pub use feed::*;
pub use figures::*;
pub use hostile::*;
pub use identity::*;
pub use keys::*;
pub use objects::*;
pub use posts::*;
pub use reach::*;
pub use search::*;
pub use standing::*;
pub use sweeps::*;

use crate::{Location, Store, StoreError, StoreFuture};

/// The cells of a `SELECT`, as text.
pub type TextRows = Vec<Vec<Option<String>>>;

/// A store that can be looked into.
pub trait Inspect: Store {
    fn select(&self, sql: String) -> StoreFuture<'_, TextRows>;

    /// Sets how many steps one transaction may take along what follows from what is stored.
    fn limit_steps(&self, steps: usize) -> StoreFuture<'_, ()>;
}

/// Somewhere to keep one crawl: a fresh file, a fresh schema of a server.
pub trait Place: Send + Sync {
    /// Opens the crawl, and makes it the first time.
    fn open(&self) -> Result<Box<dyn Inspect>, StoreError>;

    /// Where that is.
    fn location(&self) -> Location;
}

/// Makes one test of every property. `$make` is a function without arguments that gives a fresh
/// [`Place`].
#[macro_export]
macro_rules! store_suite {
    ($make:expr) => {
        $crate::store_suite! { @tests $make;
            a_commit_reads_back,
            what_is_described_is_told_with_its_age,
            the_log_keeps_every_field,
            permuted_observations_end_equal,
            overruled_values_stay_readable,
            the_same_commit_twice_changes_nothing,
            a_value_of_the_wrong_kind_is_kept,
            hostile_text_survives,
            far_times_survive,
            an_object_is_found_by_every_stable_id,
            a_handle_moves_and_merges_nobody,
            a_seed_known_by_handle_only_is_found_through_it,
            the_newest_holder_of_a_handle_is_found,
            a_handle_moves_to_and_fro_within_one_transaction,
            an_id_that_is_told_twice_is_kept_once,
            what_is_only_named_is_pending_until_described,
            an_answer_under_another_type_merges_nobody,
            an_alias_never_makes_one_of_two_canonical_ids,
            an_address_joins_those_who_have_no_canonical_id,
            a_hosts_own_id_joins_only_what_it_alone_has_named,
            an_answer_about_somebody_else_is_somebody_else,
            claims_in_any_order_end_equal,
            keys_are_merged_in_every_direction,
            merged_rows_equal_rows_that_were_one_from_the_start,
            a_merged_key_is_followed,
            keys_are_never_given_twice,
            a_merge_moves_tasks_and_cursors,
            a_chain_of_merges_ends_at_one_key,
            references_inside_extra_are_followed,
            a_merge_within_one_transaction_keeps_both_halves,
            a_failed_merge_leaves_no_trace,
            depths_equal_a_breadth_first_search,
            depths_through_merged_keys,
            a_hub_is_handed_on_in_bounded_steps,
            a_hub_that_comes_nearer_starts_over,
            a_merge_beside_a_half_done_list_misses_nobody,
            a_type_that_becomes_known_late_changes_who_is_within_reach,
            a_greater_depth_opens_what_is_within_reach,
            new_robots_get_their_rows,
            discoveries_without_rules_are_filed_later,
            a_shorter_path_reopens,
            a_post_is_filed_when_its_author_is_within_reach,
            a_post_that_was_named_itself_takes_the_lesser_depth,
            a_post_with_nothing_to_ask_for_is_not_filed,
            a_post_that_answers_what_is_only_named_is_filed_to_name_it,
            users_are_left_out_when_there_is_nothing_to_ask_for,
            who_was_told_of_whole_counts_as_visited,
            an_authors_posts_are_filed_in_bounded_steps,
            a_post_that_moves_among_its_authors_posts_is_not_passed_over,
            people_come_in_by_what_they_do_with_posts,
            reposts_of_reposts_are_filed_so_many_steps,
            answers_are_filed_so_many_steps_down_the_tree,
            posts_come_in_by_the_list_that_names_them,
            what_a_list_tells_gives_way_to_what_describes_a_post,
            who_opted_out_is_known_with_the_task,
            a_reply_has_a_row_among_the_comments,
            an_answer_may_stand_before_what_it_answers,
            a_circle_of_replies_has_no_beginning,
            comments_that_are_no_posts_stand_beside_replies,
            merged_posts_have_one_conversation,
            conversations_follow_the_newest_observations,
            a_relation_that_a_whole_walk_did_not_show_has_vanished,
            what_proves_nothing_sweeps_nothing,
            a_newer_walk_takes_the_place_of_an_older_sweep,
            a_relation_that_reappears_is_restored,
            a_vanished_relation_still_hands_depths_on,
            a_merge_in_the_middle_of_a_sweep_misses_nobody,
            sweeps_equal_a_plain_comparison,
            reach_equals_a_plain_computation,
            rules_that_grow_reach_what_they_would_have_from_the_start,
            spells_open_and_close,
            hearsay_gives_way_to_the_own_host_in_any_order,
            gone_and_not_found_are_told_apart,
            deleted_posts_are_marked,
            what_is_due_is_read_in_order,
            tasks_are_read_as_they_were_written,
            many_tasks_are_read_in_the_order_in_which_they_are_asked_for,
            cursors_are_replaced,
            runs_are_kept_with_their_definitions,
            outcomes_keep_the_newest_and_count_all,
            links_keep_the_widest_span,
            everything_is_there_after_reopening,
            concurrent_commits_are_all_kept,
            a_commit_that_contradicts_itself_fails_alone,
            a_summary_counts,
            people_and_posts_are_read_page_by_page,
            relations_and_links_are_read_page_by_page,
            a_conversation_is_read_whole,
            an_object_tells_where_it_comes_from,
            what_an_object_was_before_is_read_page_by_page,
            calls_are_filtered_within_bounds,
            outcomes_are_filtered_within_bounds,
            figures_are_counted_over_the_newest,
            a_picture_has_the_best_connected,
            hostile_questions_do_no_harm,
            rows_are_counted_beside,
            a_crawl_is_browsed_while_it_goes_on,
            the_feed_tells_what_answers_brought,
            the_feed_goes_on_from_any_event,
            the_feed_follows_merged_keys,
            words_are_found_in_every_script,
            the_index_follows_the_crawl,
            things_are_found_by_their_names,
            people_are_listed_by_their_followers,
            no_words_are_a_mistake,
        }
    };
    (@tests $make:expr; $($property:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $property() {
                let make = $make;
                $crate::suite::$property(&|| Box::new(make())).await;
            }
        )+
    };
}

/// What makes fresh places.
pub type Make<'a> = &'a (dyn Fn() -> Box<dyn Place> + Sync);
