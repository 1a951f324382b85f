//! Validation rules, one file for each family; profiles; report.
