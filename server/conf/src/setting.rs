//! One configuration value that may be unset.
//!
//! A level (http, server, location) holds a `Setting` for each of its directives. Setting one twice in a level is an error;
//! merging takes the parent's value if the child has none; the default comes last.

use crate::{ConfError, Directive};

/// A value set at most once in a level, inherited when unset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T>(Option<T>);

impl<T> Default for Setting<T> {
    fn default() -> Self {
        Self::UNSET
    }
}

impl<T> Setting<T> {
    /// Not set.
    pub const UNSET: Self = Self(None);

    /// Sets the value; `"x" directive is duplicate` when it has been set.
    ///
    /// # Errors
    /// When the setting has a value.
    pub fn set(&mut self, directive: &Directive, value: T) -> Result<(), ConfError> {
        self.set_with(directive, |_| Ok(value))
    }

    /// Sets the value that is read from the directive; a duplicate is noticed before a bad value is.
    ///
    /// # Errors
    /// When the setting has a value, or `read` fails.
    pub fn set_with(
        &mut self,
        directive: &Directive,
        read: impl FnOnce(&Directive) -> Result<T, ConfError>,
    ) -> Result<(), ConfError> {
        if self.0.is_some() {
            return Err(ConfError::directive(directive, "is duplicate"));
        }
        self.0 = Some(read(directive)?);
        Ok(())
    }

    /// Sets the value, whether it had one or not.
    pub fn replace(&mut self, value: T) {
        self.0 = Some(value);
    }

    /// The value, when set.
    pub const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// The value to change in place, when set.
    pub const fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }

    /// Takes the value out, when set.
    pub const fn take(&mut self) -> Option<T> {
        self.0.take()
    }

    /// Takes the parent's value when it has none of its own.
    pub fn merge_from(&mut self, parent: &Self)
    where
        T: Clone,
    {
        if self.0.is_none() {
            self.0.clone_from(&parent.0);
        }
    }

    /// The value, or `default` when unset.
    #[must_use]
    pub fn or(&self, default: T) -> T
    where
        T: Clone,
    {
        self.0.clone().unwrap_or(default)
    }

    /// The value, or the result of `default` if unset.
    #[must_use]
    pub fn or_else(&self, default: impl FnOnce() -> T) -> T
    where
        T: Clone,
    {
        self.0.clone().unwrap_or_else(default)
    }
}

impl<T: Clone> Setting<T> {
    /// Takes the parent's value if unset, or the default without a parent. Afterwards it is set.
    pub fn inherit(&mut self, parent: Option<&Self>, default: impl FnOnce() -> T) {
        if let Some(parent) = parent {
            self.merge_from(parent);
        }
        if self.0.is_none() {
            self.0 = Some(default());
        }
    }
}

/// Reads a setting after its level has been merged, when every setting has a value.
impl<T> std::ops::Deref for Setting<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
            .as_ref()
            .expect("settings are read after they were merged")
    }
}

impl<T> From<Option<T>> for Setting<T> {
    fn from(value: Option<T>) -> Self {
        Self(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::directive;

    #[test]
    fn a_second_value_in_one_level_is_a_duplicate() {
        let d = directive("gzip on;");
        let mut setting: Setting<i32> = Setting::UNSET;
        setting.set(&d, 1).expect("the first value is accepted");
        let error = setting.set(&d, 2).expect_err("the second is not");
        assert_eq!(error.message(), "\"gzip\" directive is duplicate");
        assert_eq!(setting.get(), Some(&1));
    }

    #[test]
    fn a_duplicate_is_noticed_before_a_bad_value() {
        let d = directive("gzip maybe;");
        let mut setting = Setting::from(Some(true));
        let error = setting
            .set_with(&d, crate::flag)
            .expect_err("it has a value");
        assert_eq!(error.message(), "\"gzip\" directive is duplicate");
    }

    #[test]
    fn a_bad_value_leaves_the_setting_unset() {
        let d = directive("gzip maybe;");
        let mut setting: Setting<bool> = Setting::UNSET;
        assert!(setting.set_with(&d, crate::flag).is_err());
        assert!(setting.get().is_none());
    }

    #[test]
    fn the_child_wins_then_the_parent_then_the_default() {
        let parent = Setting::from(Some(2));
        let mut child = Setting::from(Some(1));
        child.merge_from(&parent);
        assert_eq!(child.or(9), 1);
        let mut unset: Setting<i32> = Setting::UNSET;
        unset.merge_from(&parent);
        assert_eq!(unset.or(9), 2);
        assert_eq!(Setting::<i32>::UNSET.or(9), 9);
    }
}
