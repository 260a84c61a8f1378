//! `settings!`: a struct of settings, and the rows of the directives that set its fields.

/// Declares a struct of settings and its directive rows.
///
/// ```text
/// settings! {
///     /// Settings of `index`.
///     pub struct IndexLoc: Location / PLAIN {
///         /// One line of documentation, which becomes the row's.
///         recursive "recursive_error_pages": bool = false, "off", HTTP_LOC;
///     }
///     extra {
///         /// A field beside the plain settings; `= path` is how a level merges it with its parent's, mostly `inherited`.
///         names: Vec<Name> = inherited,
///     }
///     merge a function of both levels, after all fields
/// }
/// ```
///
/// `pub struct Ranges: IndexLoc.ranges` declares a part of another struct, which has an extra field
/// `ranges: Ranges = Ranges::merge`.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident : $scope:ident $(. $part:ident)? / $rows:ident { $($fields:tt)* }
        $($rest:tt)*
    ) => {
        $crate::settings! { $(#[$meta])* $vis struct $name: $scope $(. $part)? { $($fields)* } $($rest)* }

        /// The directives that set the fields above.
        pub(crate) const $rows: &[::conf::DirectiveDef<$crate::assemble::ConfigBuilder>] = $name::rows();
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident : $whole:ident . $part:ident { $($fields:tt)* }
        $($rest:tt)*
    ) => {
        $crate::settings! { @struct |build| &mut build.settings::<$whole>().$part; $(#[$meta])* $vis struct $name { $($fields)* } $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident : $scope:ident { $($fields:tt)* }
        $($rest:tt)*
    ) => {
        $crate::settings! { @struct |build| build.settings::<$name>(); $(#[$meta])* $vis struct $name { $($fields)* } $($rest)* }

        impl $crate::settings_set::Conf for $name {
            fn def() -> &'static $crate::settings_set::SettingsDef {
                static UNIT: $crate::settings_set::SettingsDef =
                    $crate::settings_set::SettingsDef::new($crate::settings_set::Scope::$scope, || ::std::sync::Arc::new($name::default()));
                &UNIT
            }

            fn merge(&mut self, parent: Option<&Self>) {
                Self::merge(self, parent);
            }
        }
    };
    (
        @struct $own:expr;
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident $directive:literal : $ty:ty = $default:expr, $shown:literal, $contexts:expr ; )*
        }
        $( extra { $( $(#[$xmeta:meta])+ $xfield:ident : $xty:ty $(= $inherit:path)? ),* $(,)? } $(merge $merge:path ;)? )?
    ) => {
        $(#[$meta])*
        #[derive(Default)]
        $vis struct $name {
            $( $(#[doc = $doc])+ $vis $field: ::conf::Setting<$ty>, )*
            $( $( $(#[$xmeta])+ $vis $xfield: $xty, )* )?
        }

        impl $name {
            /// Inherits settings that are not set from `parent`, or sets their defaults.
            #[allow(unused_variables, reason = "a struct may have no plain settings")]
            pub(crate) fn merge(&mut self, parent: Option<&Self>) {
                $( self.$field.inherit(parent.map(|p| &p.$field), || $default); )*
                $( $( $( $inherit(&mut self.$xfield, parent.map(|p| &p.$xfield)); )? )* $( $merge(self, parent); )? )?
            }

            /// The directives that set the fields above.
            pub(crate) const fn rows<B: $crate::settings_set::SettingsContext>() -> &'static [::conf::DirectiveDef<B>] {
                const { &[
                    $( ::conf::DirectiveDef {
                        name: $directive,
                        contexts: $contexts,
                        arity: <$ty as ::server_base::from_args::FromArgs>::ARITY,
                        block: false,
                        default: $shown,
                        doc: concat!($($doc),+),
                        syntax: <$ty as ::server_base::from_args::FromArgs>::SYNTAX,
                        apply: |build, directive| {
                            let own: fn(&mut B) -> &mut $name = $own;
                            let value = match own(build).$field.take() {
                                None => <$ty as ::server_base::from_args::FromArgs>::parse(build, directive)?,
                                Some(own) => ::server_base::from_args::FromArgs::parse_again(own, build, directive)?,
                            };
                            own(build).$field.replace(value);
                            Ok(())
                        },
                    }, )*
                ] }
            }
        }
    };
}
