//! The rules of `bundle validate` and `catalog validate` over a small bundle and a small catalog, changed in one way at a time.

mod catalog_rules;
pub mod changes;
mod optional_rules;
mod own_details;
mod own_rules;
mod recorded;
mod reference_rules;
mod schema_answers;
mod schema_rules;
mod sizes;
mod whole;
