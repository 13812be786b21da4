"""Tags of languages (BCP 47), spelt in one way, so that names are found by their language however a source writes it.

Source:
    RFC 5646 (https://www.rfc-editor.org/rfc/rfc5646): form and usual spelling of tags, and that a language goes by its
    two-letter code where it has one (2.2.1). ISO 639-2 (https://www.loc.gov/standards/iso639-2) has the codes of three
    letters, for 20 languages two of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

LANGUAGE_TAG = r"^([A-Za-z]{2,3}|[xXiI][-_][A-Za-z0-9]{1,8})([-_][A-Za-z0-9]{1,8})*$"
"""The form of a tag, also of a private ("x-lay") or grandfathered one; "_" for "-" as POSIX writes it is taken too. No
language has a tag of more than three letters: who gives one means its name."""

_LONGER_CODES = """
aa aar  ab abk  ae ave  af afr  ak aka  am amh  an arg  ar ara  as asm  av ava  ay aym  az aze  ba bak  be bel  bg bul
bi bis  bm bam  bn ben  bo bod  bo tib  br bre  bs bos  ca cat  ce che  ch cha  co cos  cr cre  cs ces  cs cze  cu chu
cv chv  cy cym  cy wel  da dan  de deu  de ger  dv div  dz dzo  ee ewe  el ell  el gre  en eng  eo epo  es spa  et est
eu eus  eu baq  fa fas  fa per  ff ful  fi fin  fj fij  fo fao  fr fra  fr fre  fy fry  ga gle  gd gla  gl glg  gn grn
gu guj  gv glv  ha hau  he heb  hi hin  ho hmo  hr hrv  ht hat  hu hun  hy hye  hy arm  hz her  ia ina  id ind  ie ile
ig ibo  ii iii  ik ipk  io ido  is isl  is ice  it ita  iu iku  ja jpn  jv jav  ka kat  ka geo  kg kon  ki kik  kj kua
kk kaz  kl kal  km khm  kn kan  ko kor  kr kau  ks kas  ku kur  kv kom  kw cor  ky kir  la lat  lb ltz  lg lug  li lim
ln lin  lo lao  lt lit  lu lub  lv lav  mg mlg  mh mah  mi mri  mi mao  mk mkd  mk mac  ml mal  mn mon  mr mar  ms msa
ms may  mt mlt  my mya  my bur  na nau  nb nob  nd nde  ne nep  ng ndo  nl nld  nl dut  nn nno  no nor  nr nbl  nv nav
ny nya  oc oci  oj oji  om orm  or ori  os oss  pa pan  pi pli  pl pol  ps pus  pt por  qu que  rm roh  rn run  ro ron
ro rum  ru rus  rw kin  sa san  sc srd  sd snd  se sme  sg sag  sh hbs  si sin  sk slk  sk slo  sl slv  sm smo  sn sna
so som  sq sqi  sq alb  sr srp  ss ssw  st sot  su sun  sv swe  sw swa  ta tam  te tel  tg tgk  th tha  ti tir  tk tuk
tl tgl  tn tsn  to ton  tr tur  ts tso  tt tat  tw twi  ty tah  ug uig  uk ukr  ur urd  uz uzb  ve ven  vi vie  vo vol
wa wln  wo wol  xh xho  yi yid  yo yor  za zha  zh zho  zh chi  zu zul
"""
SHORT_CODES: Mapping[str, str] = MappingProxyType(
    {longer: short for short, longer in zip(*[iter(_LONGER_CODES.split())] * 2, strict=True)}
)
"""Codes of three letters, and the one of two that is used instead; of two of a language the one that libraries (and the
UMLS) use comes second."""

_WITHDRAWN = {"in": "id", "iw": "he", "ji": "yi", "jw": "jv", "mo": "ro"}
"""Codes of two letters that others have taken the place of (IANA's registry of subtags)."""


def tidy_language(tag: str) -> str:
    """A tag spelt as is usual: "-" between subtags, language "pt" (not "por"), script "Hant", region "BR".

    Example:
        >>> tidy_language("PT_br"), tidy_language("zh-hant-TW"), tidy_language("eng"), tidy_language("ger-AT")
        ('pt-BR', 'zh-Hant-TW', 'en', 'de-AT')
        >>> tidy_language("x-Lay")
        'x-Lay'

    Raises:
        ValueError: it is no tag.
    """
    if not re.fullmatch(LANGUAGE_TAG, tag):
        raise ValueError(f"'{tag}' is no language tag such as en or pt-BR")
    language, *subtags = tag.replace("_", "-").split("-")
    language = language.lower()
    language = SHORT_CODES.get(language, _WITHDRAWN.get(language, language))
    # What follows a single letter is private, or of an extension, and has no spelling of its own.
    n_known = next((place for place, part in enumerate(subtags) if len(part) == 1), len(subtags))
    n_known = 0 if len(language) == 1 else n_known
    capitals = {2: str.upper, 4: str.title}
    known = [capitals.get(len(part), str)(part) for part in subtags[:n_known]]
    return "-".join([language, *known, *subtags[n_known:]])


def spellings(tag: str) -> list[str]:
    """The tag in lower case with each code that its language has, as tables of one's own may have another.

    Example:
        >>> spellings("en-GB"), spellings("ger")
        (['en-gb', 'eng-gb'], ['de', 'deu', 'ger'])
    """
    language, *subtags = tag.lower().split("-")
    short = SHORT_CODES.get(language, _WITHDRAWN.get(language, language))
    others = [code for code, one in (*SHORT_CODES.items(), *_WITHDRAWN.items()) if one == short]
    return ["-".join([code, *subtags]) for code in (short, *others)]
