//! The words with which a server begins the parts of an entry, in the languages it speaks.
//!
//! An entry is `PREFIX SEVERITY:  MESSAGE`, and each of its further parts is again
//! `PREFIX LABEL:  TEXT`. The prefix is whatever `log_line_prefix` says, so that the label is what
//! tells where an entry begins. The words are those of the server's message catalogs.

/// What a line begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Label {
    /// An entry, of this severity in English.
    Severity(&'static str),
    /// The details of the entry above.
    Detail,
    /// Where the server was.
    Context,
    /// A hint, a statement, a query or a place in the server's source: not looked at.
    Other,
}

const LABELS: &[(Label, &[&str])] = &[
    (
        Label::Severity("PANIC"),
        &[
            "PANIC",
            "PANIK",
            "PANICO",
            "PÂNICO",
            "PANIKA",
            "KRİTİK",
            "ПАНИКА",
            "ПАНІКА",
            "პანიკა",
            "比致命错误还过分的错误",
            "손상",
        ],
    ),
    (
        Label::Severity("FATAL"),
        &[
            "FATAL",
            "FATALE",
            "FATALT",
            "KATASTROFALNY",
            "ÖLÜMCÜL (FATAL)",
            "ВАЖНО",
            "ФАТАЛЬНО",
            "ფატალური",
            "致命错误",
            "치명적오류",
        ],
    ),
    (
        Label::Severity("ERROR"),
        &[
            "ERROR",
            "FEHLER",
            "ERREUR",
            "ERRORE",
            "ERRO",
            "FEL",
            "BŁĄD",
            "HATA",
            "ОШИБКА",
            "ПОМИЛКА",
            "შეცდომა",
            "错误",
            "오류",
        ],
    ),
    (
        Label::Severity("WARNING"),
        &[
            "WARNING",
            "WARNUNG",
            "ATTENTION",
            "ATTENZIONE",
            "AVISO",
            "VARNING",
            "OSTRZEŻENIE",
            "UYARI",
            "PERINGATAN",
            "ПРЕДУПРЕЖДЕНИЕ",
            "ПОПЕРЕДЖЕННЯ",
            "გაფრთხილება",
            "警告",
            "경고",
        ],
    ),
    (
        Label::Severity("LOG"),
        &[
            "LOG",
            "LOGG",
            "DZIENNIK",
            "СООБЩЕНИЕ",
            "ЗАПИСУВАННЯ",
            "ჟურნალი",
            "日志",
            "로그",
        ],
    ),
    (
        Label::Severity("NOTICE"),
        &[
            "NOTICE",
            "HINWEIS",
            "NOTIFICA",
            "NOTIS",
            "NOTA",
            "UWAGA",
            "ЗАМЕЧАНИЕ",
            "ПОВІДОМЛЕННЯ",
            "注意",
            "알림",
        ],
    ),
    (
        Label::Severity("INFO"),
        &[
            "INFO",
            "INFORMACJA",
            "BİLGİ",
            "ИНФОРМАЦИЯ",
            "ІНФОРМАЦІЯ",
            "ინფორმაცია",
            "信息",
            "정보",
        ],
    ),
    (
        Label::Severity("DEBUG"),
        &[
            "DEBUG",
            "DEBUG1",
            "DEBUG2",
            "DEBUG3",
            "DEBUG4",
            "DEBUG5",
            "DEPURAÇÃO",
            "ОТЛАДКА",
            "НАЛАГОДЖЕННЯ",
            "გამართვა",
            "调试",
            "디버그",
        ],
    ),
    (
        Label::Detail,
        &[
            "DETAIL",
            "DÉTAIL",
            "DETALLE",
            "DETALHE",
            "DETTAGLI",
            "DETALJ",
            "DETIL",
            "SZCZEGÓŁY",
            "AYRINTI",
            "ПОДРОБНОСТИ",
            "ВІДОМОСТІ",
            "დეტალები",
            "詳細",
            "详细信息",
            "상세정보",
        ],
    ),
    (
        Label::Context,
        &[
            "CONTEXT",
            "ZUSAMMENHANG",
            "CONTEXTE",
            "CONTEXTO",
            "CONTESTO",
            "KONTEXT",
            "KONTEKST",
            "KONTEKS",
            "ORTAM",
            "КОНТЕКСТ",
            "კონტექსტი",
            "上下文",
            "文脈",
            "내용",
        ],
    ),
    (
        Label::Other,
        &[
            "HINT",
            "TIPP",
            "ASTUCE",
            "DICA",
            "TIPS",
            "SUGGERIMENTO",
            "PODPOWIEDŹ",
            "PETUNJUK",
            "İPUCU",
            "ПОДСКАЗКА",
            "УКАЗІВКА",
            "მინიშნება",
            "ヒント",
            "提示",
            "힌트",
            "STATEMENT",
            "ANWEISUNG",
            "INSTRUCTION",
            "SENTENCIA",
            "COMANDO",
            "ISTRUZIONE",
            "SATS",
            "WYRAŻENIE",
            "KOMUT",
            "PERNYATAAN",
            "ОПЕРАТОР",
            "ІНСТРУКЦІЯ",
            "ოპერატორი",
            "文",
            "语句",
            "명령 구문",
            "QUERY",
            "ANFRAGE",
            "REQUÊTE",
            "CONSULTA",
            "FRÅGA",
            "ZAPYTANIE",
            "SORGU",
            "ЗАПРОС",
            "ЗАПИТ",
            "მოთხოვნა",
            "問い合わせ",
            "查询",
            "쿼리",
            "LOCATION",
            "BACKTRACE",
            "ORT",
            "EMPLACEMENT",
        ],
    ),
];

/// The label that begins a part in this line, with the prefix before it and the text behind it.
///
/// The first colon that a label precedes decides: a server writes its prefix before it, and what
/// the message itself quotes stands behind it.
pub(super) fn label_in(line: &str) -> Option<(&str, Label, &str)> {
    let colons = line.match_indices(':');
    colons.map(|(at, _)| at).find_map(|at| {
        let (before, behind) = line.split_at_checked(at)?;
        let text = behind.get(1..).filter(|text| text.starts_with(' '))?;
        let words = before.strip_suffix(' ').unwrap_or(before);
        let (label, word) = label_at_end(words)?;
        let prefix = words.strip_suffix(word)?;
        Some((prefix, label, text.trim_start()))
    })
}

/// The label with which these words end, when nothing of a word stands before it.
fn label_at_end(words: &str) -> Option<(Label, &'static str)> {
    let labels = LABELS
        .iter()
        .flat_map(|(label, words)| words.iter().map(|word| (*label, *word)));
    labels.into_iter().find(|(_, word)| {
        let before = words.strip_suffix(word);
        before.is_some_and(|before| !before.ends_with(is_of_word))
    })
}

fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// `pg_dump: error: MESSAGE`: an entry of a program, with the severity and the message.
pub(super) fn program_line(line: &str) -> Option<(Label, &str)> {
    let (program, rest) = line.split_once(": ")?;
    let is_program = program.starts_with("pg_") && !program.contains(char::is_whitespace);
    let (word, text) = rest.split_once(": ").filter(|_| is_program)?;
    let label = match word {
        "error" => Label::Severity("ERROR"),
        "fatal" => Label::Severity("FATAL"),
        "warning" => Label::Severity("WARNING"),
        "detail" => Label::Detail,
        "hint" => Label::Other,
        _ => return None,
    };
    Some((label, text))
}
