//! Parts of an exchange: structs whose memory is used for one request after another.

/// Defines a part, with `empty` and `reset`. The line of a field sets its value for the next request: the default
/// value of its type, or the value behind `=`. Otherwise `=> clear` empties a buffer, which keeps its capacity, `=>
/// reset` resets a part of its own, and `=> keep` keeps the old value. `=> rare` is for fields that few requests
/// set: it is checked before it is dropped, which is cheaper than dropping nothing.
macro_rules! part {
    (@empty $type:ty => reset) => { <$type>::empty() };
    (@empty $type:ty $(=> $reset:ident)?) => { Default::default() };
    (@empty $type:ty, $value:expr $(=> $reset:ident)?) => { $value };
    (@reset $field:expr) => { $field = Default::default() };
    (@reset $field:expr, $value:expr) => { $field = $value };
    (@reset $field:expr $(, $value:expr)? => keep) => {};
    (@reset $field:expr => clear) => { $field.clear() };
    (@reset $field:expr => reset) => { $field.reset() };
    (@reset $field:expr => rare) => { if $field.is_some() { $field = None; } };
    (
        $(#[$of_part:meta])*
        $part_vis:vis struct $part:ident($($param:ident: $param_type:ty),*) {
            $($(#[$of_field:meta])* $vis:vis $field:ident: $type:ty $(= $value:expr)? $(=> $reset:ident)?,)*
        }
    ) => {
        $(#[$of_part])*
        $part_vis struct $part {
            $($(#[$of_field])* $vis $field: $type,)*
        }

        impl $part {
            /// A part before its first request.
            pub(super) fn empty($($param: $param_type),*) -> Self {
                Self { $($field: $crate::exchange::part::part!(@empty $type $(, $value)? $(=> $reset)?),)* }
            }

            /// Resets the fields for the next request.
            #[inline(always)] // Every request comes through here.
            pub(super) fn reset(&mut self) {
                $($crate::exchange::part::part!(@reset self.$field $(, $value)? $(=> $reset)?);)*
            }
        }
    };
}
pub(super) use part;
