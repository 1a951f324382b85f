//! Typed views of the objects of the Operator Lifecycle Manager.
