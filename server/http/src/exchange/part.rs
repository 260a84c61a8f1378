//! Parts of an exchange: structs whose memory is used for one request after another.

/// Defines a part, with `new` and `reset`. The line of a field says what the next request finds in it: the default value
/// of its type, or the value behind `=`; with `=> clear` a buffer that is empty and keeps its capacity, with `=> keep` what
/// the last request left there. With `=> rare` the field is looked at first: most requests leave `None` there, and looking
/// is cheaper than dropping nothing.
macro_rules! part {
    (@first) => { Default::default() };
    (@first $value:expr) => { $value };
    (@reset $place:expr) => { $place = Default::default() };
    (@reset $place:expr, $value:expr) => { $place = $value };
    (@reset $place:expr => clear) => { $place.clear() };
    (@reset $place:expr => keep) => {};
    (@reset $place:expr => rare) => { if $place.is_some() { $place = None; } };
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
            /// As the first request finds it.
            pub(super) fn new($($param: $param_type),*) -> Self {
                Self { $($field: $crate::exchange::part::part!(@first $($value)?),)* }
            }

            /// Makes it ready for the next request.
            #[inline(always)] // Every request comes through here.
            pub(super) fn reset(&mut self $(, $param: $param_type)*) {
                $($crate::exchange::part::part!(@reset self.$field $(, $value)? $(=> $reset)?);)*
            }
        }
    };
}
pub(super) use part;
