// SPDX-License-Identifier: Apache-2.0
// Reads dates of log lines. A name of a month is looked for only where a day and a clock follow.
#include "base/text/log_date.h"

#include "base/text/cut.h"
#include "base/text/rfc3339.h"

static const uint64_t SECOND_NS = 1000000000;
enum { YEAR_MIN = 1970, YEAR_MAX = 2262, DAY_S = 86400, WORD_MAX = 32 };

// Names of months in lower case, as programs print them in the languages of LC_TIME: English,
// German, French, Spanish, Italian, Portuguese, Dutch, Polish and Russian; short and long, alone
// and behind a day. Chinese, Japanese and Korean write numbers. Facts from glibc's locales and
// CLDR.
static const char *const MONTHS[] = {
    "jan january januar jänner jan janv janvier ene enero gen gennaio janeiro januari sty styczeń "
    "stycznia янв январь января",
    "feb february februar feber fév févr février febrero febbraio fev fevereiro februari lut luty "
    "lutego фев февр февраль февраля",
    "mar march mär mrz märz mars marzo março mrt maart marzec marca мар март марта",
    "apr april avr avril abr abril aprile kwi kwiecień kwietnia апр апрель апреля",
    "may mai mayo mag maggio maio mei maj maja май мая",
    "jun june juni juin junio giu giugno junho cze czerwiec czerwca июн июнь июня",
    "jul july juli juil juillet julio lug luglio julho lip lipiec lipca июл июль июля",
    "aug august aoû août ago agosto augustus sie sierpień sierpnia авг август августа",
    "sep sept september septembre septiembre set settembre setembro wrz wrzesień września сен сент "
    "сентябрь сентября",
    "oct october okt oktober octobre octubre ott ottobre out outubro paź październik października "
    "окт октябрь октября",
    "nov november novembre noviembre novembro lis listopad listopada ноя нояб ноябрь ноября",
    "dec december dez dezember déc décembre dic diciembre dicembre dezembro grudzień grudnia gru "
    "дек декабрь декабря",
};

// Lower case of Latin and Cyrillic letters; 0: the word is longer than any.
static size_t fold(struct slice word, char out[WORD_MAX]) {
    if (word.size > WORD_MAX)
        return 0;
    memcpy(out, word.data, word.size);
    for (size_t i = 0; i < word.size; i++) {
        unsigned char byte = (unsigned char)out[i];
        unsigned char before = i == 0 ? 0 : (unsigned char)out[i - 1];
        bool latin =
            (byte >= 'A' && byte <= 'Z') || (before == 0xc3 && byte >= 0x80 && byte <= 0x9e);
        if (latin || (before == 0xd0 && byte >= 0x90 && byte <= 0x9f)) {
            out[i] = (char)(byte + 0x20);
        } else if (before == 0xd0 && byte >= 0xa0 && byte <= 0xaf) {
            out[i - 1] = (char)0xd1;
            out[i] = (char)(byte - 0x20);
        }
    }
    return word.size;
}

// From 1; 0: none is called so.
static uint32_t month_of(struct slice word) {
    static const char english[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char folded[WORD_MAX];
    for (uint32_t month = 0; word.size == 3 && month < 12; month++) // nearly always
        if (memcmp(word.data, english + (size_t)month * 3, 3) == 0)
            return month + 1;
    if (word.size > 1 && word.data[word.size - 1] == '.')
        word.size--;
    size_t size = fold(word, folded);
    for (uint32_t month = 0; size > 0 && month < 12; month++) {
        struct slice names = slice_of(MONTHS[month]);
        while (names.size > 0) {
            struct slice name = text_until(names, ' ');
            if (slice_equal(name, (struct slice){folded, size}))
                return month + 1;
            names = text_from(names, name.size + (name.size < names.size));
        }
    }
    return 0;
}

// -- parts ----------------------------------------------------------------------------------------

static uint32_t take_fraction(struct slice *text) {
    uint64_t value = 0;
    size_t size = 0;
    for (uint64_t unit = SECOND_NS / 10; size < text->size && text_is_digit(text->data[size]);
         size++, unit /= 10)
        value += unit * (uint64_t)(text->data[size] - '0');
    text_take(text, size);
    return (uint32_t)value;
}

// "09:15:04", "09:15:04.123456"
static bool take_clock(struct slice *text, struct log_date *date) {
    int64_t second = 0;
    if (!rfc3339_take_clock(text, &second))
        return false;
    date->second = (uint32_t)second;
    bool fraction = text->size > 1 && (text->data[0] == '.' || text->data[0] == ',') &&
                    text_is_digit(text->data[1]);
    if (fraction)
        text_take(text, 1);
    date->fraction_ns = fraction ? take_fraction(text) : 0;
    return true;
}

static bool take_small(struct slice *text, size_t least, size_t most, uint32_t *number) {
    uint64_t value;
    if (!text_take_number(text, least, most, &value))
        return false;
    *number = (uint32_t)value;
    return true;
}

// "Z", "+01:00", "+0100", "+01" or nothing.
static bool take_offset(struct slice *text, struct log_date *date) {
    uint32_t hours, minutes = 0;
    date->offset_s = 0;
    date->has_offset = text_skip_char(text, 'Z');
    if (date->has_offset)
        return true;
    bool east = text_skip_char(text, '+');
    if (!east && !text_skip_char(text, '-'))
        return true;
    if (!take_small(text, 2, 2, &hours))
        return false;
    bool colon = text_skip_char(text, ':');
    if ((!take_small(text, 2, 2, &minutes) && colon) || hours > 23 || minutes > 59)
        return false;
    int32_t offset = (int32_t)(hours * 3600 + minutes * 60);
    date->offset_s = east ? offset : -offset;
    date->has_offset = true;
    return true;
}

// A word of letters, with a point behind it perhaps, or a number and the sign for month.
static struct slice take_month_word(struct slice *text, uint32_t *month) {
    static const struct slice signs[] = {{"月", 3}, {"월", 3}};
    struct slice rest = *text;
    uint32_t number;
    if (take_small(&rest, 1, 2, &number))
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (text_skip(&rest, signs[i])) {
                *month = number > 12 ? 0 : number;
                struct slice word = {text->data, text->size - rest.size};
                *text = rest;
                return word;
            }
    size_t size = 0;
    while (size < text->size && size <= WORD_MAX &&
           ((text->data[size] >= 'a' && text->data[size] <= 'z') ||
            (text->data[size] >= 'A' && text->data[size] <= 'Z') ||
            (unsigned char)text->data[size] >= 0x80))
        size++;
    if (size < 2 || size > WORD_MAX)
        return (struct slice){NULL, 0};
    *month = 0;
    struct slice word = text_take(text, size);
    text_skip_char(text, '.');
    return word;
}

// "31", " 3", "14日"
static bool take_day(struct slice *text, uint32_t *day) {
    return take_small(text, 1, 2, day) &&
           (text_skip(text, SLICE("日")) || text_skip(text, SLICE("일")) || true);
}

// Up to three: days of one digit are padded.
static bool skip_blanks(struct slice *text) {
    size_t size = 0;
    while (size < text->size && size < 3 && text->data[size] == ' ')
        size++;
    text_take(text, size);
    return size > 0;
}

// -- whole ones -----------------------------------------------------------------------------------

bool log_date_take_iso(struct slice *text, struct log_date *date) {
    struct slice rest = *text;
    *date = (struct log_date){0};
    char between = rest.size > 4 && rest.data[4] == '/' ? '/' : '-';
    if (!take_small(&rest, 4, 4, &date->year) || !text_skip_char(&rest, between) ||
        !take_small(&rest, 2, 2, &date->month) || !text_skip_char(&rest, between) ||
        !take_small(&rest, 2, 2, &date->day) ||
        !(text_skip_char(&rest, 'T') || text_skip_char(&rest, ' ') || text_skip_char(&rest, '_')) ||
        !take_clock(&rest, date) || !take_offset(&rest, date))
        return false;
    if (date->year == 0 || date->month == 0 || date->month > 12)
        date->year = date->month = 1; // there is none: nor is there this
    *text = rest;
    return true;
}

bool log_date_take_syslog(struct slice *text, struct log_date *date) {
    struct slice rest = *text;
    *date = (struct log_date){0};
    struct slice word = take_month_word(&rest, &date->month);
    bool joined = word.size > 0 && (unsigned char)word.data[word.size - 1] >= 0x80;
    if (word.size == 0 || (!skip_blanks(&rest) && !joined) || !take_day(&rest, &date->day) ||
        !skip_blanks(&rest) || !take_clock(&rest, date))
        return false;
    if (date->month == 0)
        date->month = month_of(word);
    *text = rest;
    return true;
}

bool log_date_take_month_year(struct slice *text, struct log_date *date) {
    struct slice rest = *text;
    if (!log_date_take_syslog(&rest, date) || !text_skip_char(&rest, ' ') ||
        !take_small(&rest, 4, 4, &date->year) || date->year == 0)
        return false;
    *text = rest;
    return true;
}

bool log_date_take_ctime(struct slice *text, struct log_date *date) {
    struct slice rest = *text;
    size_t size = 0;
    while (size < rest.size && size <= WORD_MAX && rest.data[size] != ' ')
        size++;
    text_take(&rest, size);
    if (size < 2 || size > WORD_MAX || !skip_blanks(&rest) ||
        !log_date_take_month_year(&rest, date))
        return false;
    *text = rest;
    return true;
}

bool log_date_take_minute(struct slice *text, struct log_date *date) {
    struct slice rest = *text;
    uint32_t hours, minutes;
    *date = (struct log_date){0};
    struct slice word = take_month_word(&rest, &date->month);
    if (word.size == 0)
        return false;
    skip_blanks(&rest);
    if (!take_day(&rest, &date->day) || !skip_blanks(&rest) || !take_small(&rest, 2, 2, &hours) ||
        !text_skip_char(&rest, ':') || !take_small(&rest, 2, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    if (date->month == 0)
        date->month = month_of(word);
    date->second = hours * 3600 + minutes * 60;
    *text = rest;
    return true;
}

bool log_date_take_month_first(struct slice *text, struct log_date *date) {
    struct slice rest = *text;
    *date = (struct log_date){0};
    struct slice word = take_month_word(&rest, &date->month);
    if (word.size == 0 || !skip_blanks(&rest) || !take_day(&rest, &date->day) ||
        !skip_blanks(&rest) || !take_small(&rest, 4, 4, &date->year) || !skip_blanks(&rest) ||
        !take_clock(&rest, date) || date->year == 0)
        return false;
    if (date->month == 0)
        date->month = month_of(word);
    *text = rest;
    return true;
}

bool log_date_take_glog(struct slice *text, struct log_date *date) {
    struct slice rest = *text;
    uint32_t both;
    *date = (struct log_date){0};
    if (!take_small(&rest, 3, 4, &both) || !text_skip_char(&rest, ' ') || !take_clock(&rest, date))
        return false;
    date->month = both / 100;
    date->day = both % 100;
    *text = rest;
    return true;
}

// -- which time that is ---------------------------------------------------------------------------

// False: there is no such day.
static bool resolve(const struct log_date *date, uint32_t year, const struct time_zone *zone,
                    uint64_t *unix_ns) {
    int64_t second;
    if (year < YEAR_MIN || year >= YEAR_MAX || !rfc3339_date(year, date->month, date->day, &second))
        return false;
    second += date->second;
    second = date->has_offset ? second - date->offset_s : time_zone_unix(zone, second);
    if (second < 0)
        return false;
    *unix_ns = (uint64_t)second * SECOND_NS + date->fraction_ns;
    return true;
}

enum log_date_result log_date_unix(const struct log_date *date, const struct time_zone *zone,
                                   uint64_t observed_ns, uint64_t *unix_ns) {
    const uint64_t day_ns = DAY_S * SECOND_NS;
    if (date->month == 0)
        return LOG_DATE_UNKNOWN_MONTH;
    if (date->year != 0)
        return resolve(date, date->year, zone, unix_ns) ? LOG_DATE_OK : LOG_DATE_NONE;
    if (observed_ns == 0)
        return LOG_DATE_NO_YEAR;
    uint64_t latest_ns = observed_ns > UINT64_MAX - day_ns ? UINT64_MAX : observed_ns + day_ns;
    // Within eight years every date exists in one of them, the 29th of February too.
    uint64_t newest = YEAR_MIN + latest_ns / SECOND_NS / DAY_S / 365 + 1;
    for (uint64_t year = newest; year + 10 >= newest && year >= YEAR_MIN; year--)
        if (resolve(date, (uint32_t)year, zone, unix_ns) && *unix_ns <= latest_ns)
            return LOG_DATE_OK;
    return LOG_DATE_NONE;
}
