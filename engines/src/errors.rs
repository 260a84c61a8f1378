//! Enums of errors with one text per variant, written beside the variant.

/// Defines such an enum, of variants `Name = "text"`, with `message` and `Display`.
macro_rules! errors {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident $(($of:ty))? = $text:literal,)+ }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $variant $(($of))?,)+
        }

        impl $name {
            /// The text for messages.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.message())
            }
        }
    };
}
