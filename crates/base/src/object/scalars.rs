//! The scalars of a document.

use olmkit_yaml::{self as yaml, Node};

/// Visits every scalar, keys too.
pub fn each_scalar<'n>(node: &'n Node, visit: &mut dyn FnMut(&'n Node)) {
    match &node.value {
        yaml::Value::Mapping(entries) => {
            for (key, value) in entries {
                each_scalar(key, visit);
                each_scalar(value, visit);
            }
        }
        yaml::Value::Sequence(items) => items.iter().for_each(|item| each_scalar(item, visit)),
        _ => visit(node),
    }
}
