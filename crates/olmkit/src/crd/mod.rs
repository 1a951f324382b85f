//! From a derived schema to the structural schema a CustomResourceDefinition holds; checks of such schemas.
