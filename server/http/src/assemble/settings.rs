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
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident : $scope:ident / $rows:ident { $($fields:tt)* }
        $($rest:tt)*
    ) => {
        $crate::settings! { $(#[$meta])* $vis struct $name: $scope { $($fields)* } $($rest)* }

        /// The directives that set the fields above.
        pub(crate) const $rows: &[::conf::DirectiveDef<$crate::assemble::ConfigBuilder>] = $name::rows();
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident : $scope:ident {
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

        impl $crate::settings_set::Conf for $name {
            fn def() -> &'static $crate::settings_set::SettingsDef {
                static UNIT: $crate::settings_set::SettingsDef =
                    $crate::settings_set::SettingsDef::new($crate::settings_set::Scope::$scope, || ::std::sync::Arc::new($name::default()));
                &UNIT
            }

            #[allow(unused_variables, reason = "a struct may have no plain settings")]
            fn merge(&mut self, parent: Option<&Self>) {
                $( self.$field.inherit(parent.map(|p| &p.$field), || $default); )*
                $( $( $( $inherit(&mut self.$xfield, parent.map(|p| &p.$xfield)); )? )* $( $merge(self, parent); )? )?
            }
        }

        impl $name {
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
                            let value = match build.settings::<$name>().$field.take() {
                                None => <$ty as ::server_base::from_args::FromArgs>::parse(build, directive)?,
                                Some(own) => ::server_base::from_args::FromArgs::parse_again(own, build, directive)?,
                            };
                            build.settings::<$name>().$field.replace(value);
                            Ok(())
                        },
                    }, )*
                ] }
            }
        }
    };
}
