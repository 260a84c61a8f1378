//! Finds SSI commands in a stream: a state machine that keeps its state across chunks.
//!
//! The result does not depend on the boundaries of chunks. The size of a command is bounded: its name and the names of
//! its parameters by [`NAME_MAX_BYTES`], their number by [`PARAMS_MAX`], their values by `ssi_value_length`.
//!
//! Source: nginx documentation, `ngx_http_ssi_module`; nginx's grammar of commands and its messages.

use memchr::memchr;
use server_base::errlog::Printable;

/// One command with its parameters, values as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) name: Vec<u8>,
    pub(super) params: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The events of the parser.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'i> {
    /// Text between commands.
    Text(&'i [u8]),
    Command(Command),
    /// Text of a broken command, and the error.
    Broken(String),
}

/// The state machine.
pub(super) struct Parser {
    state: State,
    command: Command,
    /// The error of the current command.
    why: String,
    value_max_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Outside of commands.
    Text,
    /// This number of bytes of [`MARK`] has been read.
    Mark(usize),
    BeforeCommand,
    Name,
    BeforeParam,
    Param,
    BeforeEqual,
    BeforeValue,
    /// In a value, up to this quote; a byte after a backslash is literal.
    Value {
        quote: u8,
        escaped: bool,
    },
    AfterValue,
    /// In `-->`, after this number of dashes.
    End(u8),
    /// In a broken command, after this number of dashes.
    Skip(u8),
}

impl Parser {
    pub(super) fn new(value_max_bytes: usize) -> Self {
        Self {
            state: State::Text,
            command: Command::default(),
            why: String::new(),
            value_max_bytes,
        }
    }

    /// Consumes bytes of `input` up to the next event; returns their number.
    pub(super) fn next<'i>(&mut self, input: &'i [u8]) -> (usize, Option<Event<'i>>) {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            match self.state {
                State::Text => {
                    let end = memchr(b'<', &input[at..]).map_or(input.len(), |n| at + n);
                    if end < input.len() {
                        self.state = State::Mark(1);
                    }
                    let taken = (end + 1).min(input.len());
                    if end > at {
                        return (taken, Some(Event::Text(&input[at..end])));
                    }
                    at = taken;
                    continue;
                }
                State::Mark(n) if byte == MARK[n] => {
                    self.state = match n + 1 {
                        5 => State::BeforeCommand,
                        n => State::Mark(n),
                    };
                }
                State::Mark(n) => {
                    self.state = State::Text;
                    return (at, Some(Event::Text(&MARK[..n])));
                }
                State::End(2) if byte == b'>' => {
                    self.state = State::Text;
                    let command = std::mem::take(&mut self.command);
                    return (at + 1, Some(Event::Command(command)));
                }
                State::Skip(2) if byte == b'>' => {
                    self.state = State::Text;
                    self.command = Command::default();
                    let why = std::mem::take(&mut self.why);
                    return (at + 1, Some(Event::Broken(why)));
                }
                State::Skip(dashes) => {
                    self.state = match byte {
                        b'-' => State::Skip((dashes + 1).min(2)),
                        _ => State::Skip(0),
                    };
                }
                _ => self.state = self.inside(byte),
            }
            at += 1;
        }
        (at, None)
    }

    /// Ends the input; an incomplete start of a command is text.
    pub(super) fn end(&mut self) -> &'static [u8] {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Mark(n) => &MARK[..n],
            _ => b"",
        }
    }

    /// The state after a byte inside of a command.
    fn inside(&mut self, byte: u8) -> State {
        let space = matches!(byte, b' ' | b'\r' | b'\n' | b'\t');
        match self.state {
            State::BeforeCommand if space => State::BeforeCommand,
            State::BeforeCommand => {
                self.command.name.push(byte);
                State::Name
            }
            State::Name if space => State::BeforeParam,
            State::Name | State::BeforeParam if byte == b'-' => State::End(1),
            State::Name if self.command.name.len() == NAME_MAX_BYTES => {
                let name = printable(&self.command.name);
                let byte = char::from(byte);
                self.fail(
                    0,
                    format!("the \"{name}{byte}...\" SSI command is too long"),
                )
            }
            State::Name => {
                self.command.name.push(byte);
                State::Name
            }
            State::BeforeParam if space => State::BeforeParam,
            State::BeforeParam if self.command.params.len() == PARAMS_MAX => {
                let name = printable(&self.command.name);
                self.fail(0, format!("too many SSI command parameters: \"{name}\""))
            }
            State::BeforeParam => {
                self.command.params.push((vec![byte], Vec::new()));
                State::Param
            }
            State::AfterValue if space => State::BeforeParam,
            State::AfterValue if byte == b'-' => State::End(1),
            State::End(1) if byte == b'-' => State::End(2),
            State::End(_) => {
                let (byte, name) = (char::from(byte), printable(&self.command.name));
                self.fail(
                    0,
                    format!("unexpected \"{byte}\" symbol in \"{name}\" SSI command"),
                )
            }
            _ => self.inside_param(byte, space),
        }
    }

    /// Returns the state after a byte within a parameter.
    // Long: an arm for each state, with its error message.
    fn inside_param(&mut self, byte: u8, space: bool) -> State {
        let dashes = u8::from(byte == b'-');
        let shown_byte = char::from(byte);
        let name = &self.command.name;
        let Some((key, value)) = self.command.params.last_mut() else {
            return State::BeforeParam;
        };
        let whose = |key: &[u8]| {
            format!(
                "\"{}\" parameter in \"{}\" SSI command",
                printable(key),
                printable(name)
            )
        };
        // Arms that accept the byte return; the others evaluate to an error message.
        let why = match self.state {
            State::Param | State::BeforeEqual if byte == b'=' => return State::BeforeValue,
            State::Param | State::BeforeEqual if space => return State::BeforeEqual,
            State::Param if byte != b'-' && key.len() < NAME_MAX_BYTES => {
                key.push(byte);
                return State::Param;
            }
            State::Param if byte != b'-' => format!(
                "too long \"{}{shown_byte}...\" parameter in \"{}\" SSI command",
                printable(key),
                printable(name)
            ),
            State::Param | State::BeforeEqual => {
                format!("unexpected \"{shown_byte}\" symbol after {}", whose(key))
            }
            State::BeforeValue if space => return State::BeforeValue,
            State::BeforeValue if matches!(byte, b'"' | b'\'') => {
                return State::Value {
                    quote: byte,
                    escaped: false,
                };
            }
            State::BeforeValue => {
                format!(
                    "unexpected \"{shown_byte}\" symbol before value of {}",
                    whose(key)
                )
            }
            State::Value {
                quote,
                escaped: false,
            } if byte == quote => return State::AfterValue,
            State::Value { quote, escaped } if value.len() < self.value_max_bytes => {
                value.push(byte);
                return State::Value {
                    quote,
                    escaped: !escaped && byte == b'\\',
                };
            }
            State::Value { .. } => {
                let text = format!(
                    "too long \"{}{shown_byte}...\" value of {}",
                    printable(value),
                    whose(key)
                );
                return self.fail(0, text);
            }
            _ => {
                let text = format!(
                    "unexpected \"{shown_byte}\" symbol after \"{}\" value of {}",
                    printable(value),
                    whose(key)
                );
                return self.fail(0, text);
            }
        };
        self.fail(dashes, why)
    }

    /// Marks the command as broken; its end is searched, after this number of dashes.
    fn fail(&mut self, dashes: u8, why: String) -> State {
        self.why = why;
        State::Skip(dashes)
    }
}

fn printable(text: &[u8]) -> Printable<'_> {
    Printable(text)
}

/// The start of a command.
const MARK: &[u8; 5] = b"<!--#";
/// The longest name of a command or a parameter, as in nginx.
const NAME_MAX_BYTES: usize = 32;
/// Maximum number of parameters of a command, as in nginx.
const PARAMS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Text, commands in brackets and errors in braces, of input that comes in pieces.
    fn read(pieces: &[&[u8]]) -> String {
        let mut parser = Parser::new(20);
        let mut out = String::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (n, event) = parser.next(rest);
                rest = &rest[n..];
                match event {
                    Some(Event::Text(text)) => out.push_str(&printable(text).to_string()),
                    Some(Event::Command(command)) => out.push_str(&format!(
                        "[{}{}]",
                        printable(&command.name),
                        command
                            .params
                            .iter()
                            .map(|(key, value)| format!(" {}={}", printable(key), printable(value)))
                            .collect::<String>()
                    )),
                    Some(Event::Broken(why)) => out.push_str(&format!("{{{why}}}")),
                    None => assert_eq!(rest, b""),
                }
            }
        }
        out.push_str(&printable(parser.end()).to_string());
        out
    }

    const PAGE: &str = "a<b<!-<!--<!-- x --><!--#echo var=\"v\\\"w\" default='' -->\
        <<!--# set\tvar = 'x'\n\n value='>'--><!--#endif--><!--#if expr=\"$a = /x-->/\" -->tail<!--";

    #[test]
    fn text_and_commands_are_told_apart() {
        assert_eq!(
            read(&[PAGE.as_bytes()]),
            "a<b<!-<!--<!-- x -->[echo var=v\\\"w default=]<[set var=x value=>][endif][if expr=$a = /x-->/]tail<!--"
        );
    }

    #[test]
    fn the_same_bytes_cut_anywhere_give_the_same() {
        let page = [
            PAGE,
            "<!--#x y\" -->z<!--#echo var='123456789012345678901'-->.",
        ]
        .concat();
        let whole = read(&[page.as_bytes()]);
        for at in 0..=page.len() {
            let (front, rest) = page.as_bytes().split_at(at);
            assert_eq!(read(&[front, rest]), whole, "cut at {at}");
        }
        let single: Vec<&[u8]> = page.as_bytes().chunks(1).collect();
        assert_eq!(read(&single), whole);
    }

    #[test]
    fn what_is_no_command_says_why() {
        for (text, why) in [
            (
                "<!--#echo var v='x' -->",
                "unexpected \"v\" symbol after \"var\" parameter in \"echo\" SSI command",
            ),
            (
                "<!--#echo var=x -->",
                "unexpected \"x\" symbol before value of \"var\" parameter in \"echo\" SSI command",
            ),
            (
                "<!--#echo var-->",
                "unexpected \"-\" symbol after \"var\" parameter in \"echo\" SSI command",
            ),
            (
                "<!--#echo var='x'y -->",
                "unexpected \"y\" symbol after \"x\" value of \"var\" parameter in \"echo\" SSI command",
            ),
            (
                "<!--#echo -x-->",
                "unexpected \"x\" symbol in \"echo\" SSI command",
            ),
            (
                "<!--#echo --x-->",
                "unexpected \"x\" symbol in \"echo\" SSI command",
            ),
        ] {
            assert_eq!(read(&[text.as_bytes(), b"."]), format!("{{{why}}}."));
        }
    }

    #[test]
    fn limits_hold_at_the_limit_and_not_one_past() {
        let name = "n".repeat(NAME_MAX_BYTES);
        assert_eq!(
            read(&[format!("<!--#{name} -->").as_bytes()]),
            format!("[{name}]")
        );
        assert!(
            read(&[format!("<!--#{name}n -->").as_bytes()]).ends_with("SSI command is too long}")
        );
        assert_eq!(
            read(&[format!("<!--#x {name}='' -->").as_bytes()]),
            format!("[x {name}=]")
        );
        assert!(read(&[format!("<!--#x {name}n='' -->").as_bytes()]).starts_with("{too long"));
        let value = "v".repeat(20);
        assert_eq!(
            read(&[format!("<!--#x y='{value}' -->").as_bytes()]),
            format!("[x y={value}]")
        );
        assert!(read(&[format!("<!--#x y='{value}v' -->").as_bytes()]).starts_with("{too long"));
        let params = " a=''".repeat(PARAMS_MAX);
        assert_eq!(
            read(&[format!("<!--#x{params} -->").as_bytes()]),
            format!("[x{}]", " a=".repeat(PARAMS_MAX))
        );
        assert!(read(&[format!("<!--#x{params} a='' -->").as_bytes()]).starts_with("{too many"));
    }
}
