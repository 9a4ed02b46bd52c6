"""The words that name times, in English, German, French and Spanish; lower case, without accents."""

from __future__ import annotations


def _number_words(rows: tuple[str, ...], first: int = 1) -> dict[str, int]:
    return {word: number for number, row in enumerate(rows, first) for word in row.split()}


def _name_words(**rows: str) -> dict[str, str]:
    return {word: name for name, row in rows.items() for word in row.split()}


def _word_set(row: str) -> frozenset[str]:
    return frozenset(row.split())


MONTHS = _number_words((
    "january jan januar janner janvier enero ene", "february feb februar fevrier fevr febrero", "march mar marz mars marzo",
    "april apr avril avr abril abr", "may mai mayo", "june jun juni juin junio", "july jul juli juillet julio",
    "august aug aout agosto ago", "september sept sep septembre septiembre setiembre",
    "october oct oktober okt octobre octubre", "november nov novembre noviembre",
    "december dec dezember dez decembre diciembre dic",
))  # fmt: skip
# These are also names, verbs or other words: alone they are months only after a word that shows it.
UNSURE_MONTHS = _word_set(
    "may march mar april june august mai mars jan jun dec sep sept apr ene abr abril avr ago dic jul juli julio mayo"
)
# These are ambiguous even after a number: "option 3 may work", "dos ago".
UNSURE_AFTER_NUMBER = _word_set("may march mar ago mars")

WEEKDAYS = _number_words((
    "monday montag lundi lunes", "tuesday dienstag mardi martes", "wednesday mittwoch mercredi miercoles",
    "thursday donnerstag jeudi jueves", "friday freitag vendredi viernes", "saturday samstag sonnabend samedi sabado",
    "sunday sonntag dimanche domingo",
), 0)  # fmt: skip
SHORT_WEEKDAYS = _number_words(("mon", "tue tues", "wed", "thu thur thurs", "fri", "sat", "sun"), 0)
MANY_WEEKDAYS = _number_words(("mondays", "tuesdays", "wednesdays", "thursdays", "fridays", "saturdays", "sundays"), 0)

UNITS = _name_words(
    hour="hour hours minute minutes second seconds stunde stunden minuten heure heures hora horas minutos",
    day="day days night nights tag tage tagen jour jours nuits dia dias noches",
    week="week weeks woche wochen semaine semaines semana semanas",
    weekend="weekend weekends wochenende wochenenden weekends finde",
    fortnight="fortnight fortnights",
    month="month months monat monate monaten monats mois mes meses",
    quarter="quarter quarters quartal trimestre",
    year="year years jahr jahre jahren jahres annee annees an ans ano anos",
    decade="decade decades jahrzehnt jahrzehnte jahrzehnten decennie decennies decada decadas",
)
MADE_OF = {"fortnight": ("week", 2), "decade": ("year", 10), "quarter": ("month", 3)}
SLACK = {"hour": 0, "day": 0, "week": 3, "month": 15, "year": 182}  # days: half a unit, since people round

SEASONS = _name_words(
    spring="spring springtime fruhling fruhjahr printemps primavera", summer="summer summertime sommer ete verano",
    autumn="autumn fall herbst automne otono", winter="winter wintertime hiver invierno",
)  # fmt: skip
SEASON_STARTS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
HOLIDAYS = _name_words(
    christmas="christmas xmas weihnachten noel navidad", valentine="valentine valentines", halloween="halloween",
    thanksgiving="thanksgiving", easter="easter ostern paques", silvester="silvester nochevieja", newyear="neujahr",
)  # fmt: skip
HOLIDAY_DATES = {  # month, first day, last day
    ("christmas", ""): (12, 24, 26), ("christmas", "eve"): (12, 24, 24), ("christmas", "day"): (12, 25, 25),
    ("valentine", ""): (2, 14, 14), ("halloween", ""): (10, 31, 31), ("silvester", ""): (12, 31, 31),
    ("newyear", ""): (1, 1, 1), ("newyear", "eve"): (12, 31, 31),
}  # fmt: skip

NUMBERS = _number_words((
    "zero null", "a an one ein eine einem einen einer un une una uno", "two zwei deux dos", "three drei trois tres",
    "four vier quatre cuatro", "five funf cinq cinco", "six sechs seis", "seven sieben sept siete",
    "eight acht huit ocho", "nine neun neuf nueve", "ten zehn dix diez", "eleven elf onze once",
    "twelve zwolf douze doce dozen", "thirteen dreizehn treize trece", "fourteen vierzehn quatorze catorce",
    "fifteen funfzehn quinze quince",
    "sixteen sechzehn seize dieciseis", "seventeen siebzehn diecisiete", "eighteen achtzehn dieciocho",
    "nineteen neunzehn diecinueve", "twenty zwanzig vingt veinte",
), 0)  # fmt: skip
_TENS = (
    "", "twenty", "thirty dreissig trente treinta", "forty vierzig quarante cuarenta", "fifty funfzig cinquante cincuenta",
    "sixty sechzig soixante sesenta", "seventy siebzig setenta", "eighty achtzig ochenta", "ninety neunzig noventa",
)  # fmt: skip
TENS = {word: ten * 10 for word, ten in _number_words(_TENS).items()}
VAGUE = (
    dict.fromkeys(("couple", "paar", "par"), (2, 3))
    | dict.fromkeys(_word_set("few einige einigen wenigen quelques unos unas algunos algunas"), (2, 5))
    | dict.fromkeys(_word_set("several mehreren plusieurs varios varias"), (3, 8))
)
ORDINALS = _number_words((
    "first erste ersten erster premier premiere primer primera", "second zweite zweiten zweiter deuxieme segundo segunda",
    "third dritte dritten dritter troisieme tercer tercera", "fourth vierte vierten vierter quatrieme cuarto cuarta", "fifth",
))  # fmt: skip
ORDINAL_ENDS = _word_set("st nd rd th er e o a")
HALVES = _word_set("half halfte moitie mitad")

DAY_WORDS = {"vorgestern": -2, "anteayer": -2, "antier": -2, "tomorrow": 1, "demain": 1, "ubermorgen": 2} | (
    dict.fromkeys(("yesterday", "gestern", "ayer", "anoche"), -1)
    | dict.fromkeys(("today", "tonight", "heute", "aujourd", "hoy"), 0)
)
PHRASES = {  # each word alone means something else
    "day": ((("before", "yesterday"), -2), (("after", "tomorrow"), 2)),
    "avant": ((("-", "hier"), -2), (("hier",), -2)),
    "apres": ((("-", "demain"), 2), (("demain",), 2)),
    "antes": ((("de", "ayer"), -2),),
    "pasado": ((("manana",), 2),),
}
MORNINGS = _word_set("morgen manana")  # means tomorrow, unless a word before shows that it means a morning
OF_A_MORNING = _word_set(
    "guten am jeden jeder der den la cada una esta buena heute gestern montag dienstag mittwoch donnerstag freitag "
    "samstag sonntag"
)
PARTS_OF_DAY = _word_set(
    "morning afternoon evening night noon morgen vormittag mittag nachmittag abend nacht matin midi soir nuit "
    "manana tarde noche"
)
MANY_PARTS = _word_set("mornings afternoons evenings nights")

LAST = _word_set(
    "last past previous letzte letzten letzter letztes letztem vorige voriges vorigen vergangene vergangenen vergangenes "
    "dernier derniere derniers dernieres ultimo ultima ultimos ultimas pasado pasada"
)
AFTER_NOUN = dict.fromkeys(_word_set("dernier derniere passe passee pasado pasada"), -1) | dict.fromkeys(
    _word_set("prochain prochaine proximo proxima"), 1
)
THIS = _word_set("this diese diesen dieser dieses diesem ce cet cette este esta")
NEXT = _word_set("next upcoming nachste nachsten nachster nachstes kommende kommenden proximo proxima")
AGO = _word_set("ago earlier back")
AGO_BEFORE = _word_set("vor hace")

EARLY = _word_set("early beginning start anfang debut principios comienzos")
MIDDLE = _word_set("mid middle mitte mi mediados")
LATE = _word_set("late end ende fin finales fines")

ARTICLES = _word_set("the of der die das dem den des de del d l le la les el los las du year month jahr ano mes annee an mois")
SINCE = _word_set("since seit depuis desde")
AFTER = _word_set("after nach apres following despues")
BEFORE = _word_set("before vor avant antes prior")
UNTIL = _word_set("until till by bis jusqu jusque hasta")
BETWEEN = _word_set("between from zwischen von entre du desde")
JOINS = _word_set("and to until till through - – — bis und et a au al y hasta")
RANGES = _word_set("to through thru until till - – — bis")
MARKERS = SINCE | AFTER | BEFORE | UNTIL | BETWEEN | _word_set(
    "in during of on over throughout around about circa early mid late end beginning start middle im am um wahrend en durante "
    "pour anfang mitte ende debut fin principios mediados finales through"
)  # fmt: skip
BEFORE_WEEKDAY = SINCE | AFTER | BEFORE | UNTIL | BETWEEN | _word_set("on am el and to bis")
OPEN = {"since": SINCE, "after": AFTER, "before": BEFORE, "until": UNTIL}
LEADING = _word_set("the of der die das dem den des de del d l le la les el los las in im")
HAVE_PARTS = _word_set("week month quarter season year")
WEEK_WORDS = LAST | THIS | NEXT | _word_set("of")
AT_WEEKEND = _word_set("over am")
EVERY = _word_set("every each jeden jede jedes chaque cada")
SEASON_MARKERS = (
    SINCE | BEFORE | AFTER | UNTIL | EARLY | MIDDLE | LATE | _word_set("in during over of for throughout im en au pour durante")
)
YEAR_MARKERS = (
    SINCE
    | BEFORE
    | AFTER
    | UNTIL
    | BETWEEN
    | EARLY
    | MIDDLE
    | LATE
    | _word_set("in during throughout year im jahr en ano annee")
)
OVER = _word_set("in over during within for throughout")
PARTS_AND_UNITS = EARLY | MIDDLE | LATE | HALVES | frozenset(UNITS)
A_YEAR_FOLLOWS = _word_set(", - of in de del d")

FRENCH = _word_set(
    "le la les une est je tu nous vous dans avec pour que qui et du des ou quand ai fait quoi mon ma qu il elle on au sur pas"
)
GERMAN = _word_set(
    "der die das ist und ich wir ein eine mit fur auf nicht was wann wo war haben hat von zu im den dem wer wie es sie er"
)

# A text with none of these, and no year or numeric date, names no time.
HINTS = frozenset().union(
    MONTHS, WEEKDAYS, SHORT_WEEKDAYS, MANY_WEEKDAYS, UNITS, SEASONS, HOLIDAYS, DAY_WORDS, MORNINGS, PARTS_OF_DAY, ("hier", "q"),
)  # fmt: skip
# Words with which an expression can begin.
BEGINNINGS = HINTS.union(
    NUMBERS, TENS, VAGUE, ORDINALS, LAST, THIS, NEXT, AGO_BEFORE, EARLY, MIDDLE, LATE, SINCE, AFTER, BEFORE, UNTIL, BETWEEN,
    PHRASES, ("other", "half", "new", "y", "fin"),
)  # fmt: skip
