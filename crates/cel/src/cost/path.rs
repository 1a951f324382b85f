//! The origin of a value: the variable and the fields after it. The API server's estimator extends a variable's path in
//! place if Go's slice has spare capacity, so that a later path may change an earlier one. The estimate depends on
//! this, so it is reproduced.

use std::cell::RefCell;
use std::rc::Rc;

/// A path. Copies share their names, as slices of Go do.
#[derive(Clone)]
pub(super) struct Path {
    names: Rc<RefCell<Vec<Rc<str>>>>,
    len: usize,
    capacity: usize,
}

impl Path {
    pub(super) fn new(variable: &str) -> Self {
        Self {
            names: Rc::new(RefCell::new(vec![variable.into()])),
            len: 1,
            capacity: 1,
        }
    }

    /// The path that Go's `append` returns.
    pub(super) fn below(above: Option<Self>, name: &str) -> Self {
        let Some(above) = above else { return Self::new(name) };
        if above.len == above.capacity {
            let mut names = above.names();
            names.push(name.into());
            return Self {
                names: Rc::new(RefCell::new(names)),
                len: above.len + 1,
                capacity: above.capacity * 2,
            };
        }
        let mut names = above.names.borrow_mut();
        match names.get_mut(above.len) {
            Some(later) => *later = name.into(),
            None => names.push(name.into()),
        }
        drop(names);
        Self {
            len: above.len + 1,
            ..above
        }
    }

    pub(super) fn names(&self) -> Vec<Rc<str>> {
        self.names.borrow().iter().take(self.len).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &Path) -> String {
        path.names().join(".")
    }

    #[test]
    fn paths_share_their_names_as_slices_do() {
        let three = Path::below(Some(Path::below(Some(Path::new("self")), "a")), "@items");
        let first = Path::below(Some(three.clone()), "b");
        assert_eq!(shown(&first), "self.a.@items.b");
        let second = Path::below(Some(three), "c");
        assert_eq!(
            (shown(&first), shown(&second)),
            ("self.a.@items.c".into(), "self.a.@items.c".into())
        );
        let third = Path::below(Some(first.clone()), "d");
        let _ = Path::below(Some(first), "e");
        assert_eq!(shown(&third), "self.a.@items.c.d");
    }
}
