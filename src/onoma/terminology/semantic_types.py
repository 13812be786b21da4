"""The semantic types of the UMLS, in their 15 semantic groups, and what a user may call them.

From the NLM's files SemGroups.txt and SemGroups_2018.txt (https://www.nlm.nih.gov/research/umls/knowledge_sources/
semantic_network/semantic_groups.html): 127 types, and six that older releases still use (T110, T111, T115, T118,
T119, T124). Source: McCray, Burgun, Bodenreider 2001.
"""

from __future__ import annotations

import re
from typing import Any

from onoma.errors import did_you_mean
from onoma.terminology.readers.options import split_words

_GROUPS = """
ACTI Activities & Behaviors
T052 Activity
T053 Behavior
T056 Daily or Recreational Activity
T051 Event
T064 Governmental or Regulatory Activity
T055 Individual Behavior
T066 Machine Activity
T057 Occupational Activity
T054 Social Behavior
ANAT Anatomy
T017 Anatomical Structure
T029 Body Location or Region
T023 Body Part, Organ, or Organ Component
T030 Body Space or Junction
T031 Body Substance
T022 Body System
T025 Cell
T026 Cell Component
T018 Embryonic Structure
T021 Fully Formed Anatomical Structure
T024 Tissue
CHEM Chemicals & Drugs
T116 Amino Acid, Peptide, or Protein
T195 Antibiotic
T123 Biologically Active Substance
T122 Biomedical or Dental Material
T118 Carbohydrate
T103 Chemical
T120 Chemical Viewed Functionally
T104 Chemical Viewed Structurally
T200 Clinical Drug
T111 Eicosanoid
T196 Element, Ion, or Isotope
T126 Enzyme
T131 Hazardous or Poisonous Substance
T125 Hormone
T129 Immunologic Factor
T130 Indicator, Reagent, or Diagnostic Aid
T197 Inorganic Chemical
T119 Lipid
T124 Neuroreactive Substance or Biogenic Amine
T114 Nucleic Acid, Nucleoside, or Nucleotide
T109 Organic Chemical
T115 Organophosphorus Compound
T121 Pharmacologic Substance
T192 Receptor
T110 Steroid
T127 Vitamin
CONC Concepts & Ideas
T185 Classification
T077 Conceptual Entity
T169 Functional Concept
T102 Group Attribute
T078 Idea or Concept
T170 Intellectual Product
T171 Language
T080 Qualitative Concept
T081 Quantitative Concept
T089 Regulation or Law
T082 Spatial Concept
T079 Temporal Concept
DEVI Devices
T203 Drug Delivery Device
T074 Medical Device
T075 Research Device
DISO Disorders
T020 Acquired Abnormality
T190 Anatomical Abnormality
T049 Cell or Molecular Dysfunction
T019 Congenital Abnormality
T047 Disease or Syndrome
T050 Experimental Model of Disease
T033 Finding
T037 Injury or Poisoning
T048 Mental or Behavioral Dysfunction
T191 Neoplastic Process
T046 Pathologic Function
T184 Sign or Symptom
GENE Genes & Molecular Sequences
T087 Amino Acid Sequence
T088 Carbohydrate Sequence
T028 Gene or Genome
T085 Molecular Sequence
T086 Nucleotide Sequence
GEOG Geographic Areas
T083 Geographic Area
LIVB Living Beings
T100 Age Group
T011 Amphibian
T008 Animal
T194 Archaeon
T007 Bacterium
T012 Bird
T204 Eukaryote
T099 Family Group
T013 Fish
T004 Fungus
T096 Group
T016 Human
T015 Mammal
T001 Organism
T101 Patient or Disabled Group
T002 Plant
T098 Population Group
T097 Professional or Occupational Group
T014 Reptile
T010 Vertebrate
T005 Virus
OBJC Objects
T071 Entity
T168 Food
T073 Manufactured Object
T072 Physical Object
T167 Substance
OCCU Occupations
T091 Biomedical Occupation or Discipline
T090 Occupation or Discipline
ORGA Organizations
T093 Health Care Related Organization
T092 Organization
T094 Professional Society
T095 Self-help or Relief Organization
PHEN Phenomena
T038 Biologic Function
T069 Environmental Effect of Humans
T068 Human-caused Phenomenon or Process
T034 Laboratory or Test Result
T070 Natural Phenomenon or Process
T067 Phenomenon or Process
PHYS Physiology
T043 Cell Function
T201 Clinical Attribute
T045 Genetic Function
T041 Mental Process
T044 Molecular Function
T032 Organism Attribute
T040 Organism Function
T042 Organ or Tissue Function
T039 Physiologic Function
PROC Procedures
T060 Diagnostic Procedure
T065 Educational Activity
T058 Health Care Activity
T059 Laboratory Procedure
T063 Molecular Biology Research Technique
T062 Research Activity
T061 Therapeutic or Preventive Procedure
"""


def _parsed() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    groups: dict[str, str] = {}
    types: dict[str, str] = {}
    group_of: dict[str, str] = {}
    for line in _GROUPS.strip().split("\n"):
        code, _, name = line.partition(" ")
        if len(code) == 4 and code.isalpha():
            groups[code] = name
        else:
            types[code] = name
            group_of[code] = list(groups)[-1]
    return groups, types, group_of


GROUPS, TYPES, GROUP_OF = _parsed()
"""Code of a group to its name; TUI to the name of the type; TUI to the code of its group."""
_TUI_OF = {name.casefold(): tui for tui, name in TYPES.items()}


def group_words(value: Any) -> Any:
    """Groups as their codes, from codes ("DISO") or names ("Disorders").

    Raises:
        ValueError: there is no such group.
    """
    words = split_words(value)
    if not isinstance(words, list | tuple):
        return words
    code_of = {name.casefold(): code for code, name in GROUPS.items()} | {code.casefold(): code for code in GROUPS}
    for word in words:
        if str(word).casefold() not in code_of:
            hint = did_you_mean(str(word).upper(), GROUPS) or did_you_mean(str(word), GROUPS.values())
            raise ValueError(f"there is no semantic group '{word}'.{hint} Known: {', '.join(GROUPS)}")
    return tuple(code_of[str(word).casefold()] for word in words)


def type_words(value: Any) -> Any:
    """Types as given, divided by commas, but not where the name of a type has commas in it.

    Example:
        >>> type_words("t047, body part, organ, or organ component, My type")
        ('T047', 'Body Part, Organ, or Organ Component', 'My type')
    """
    words = split_words(value)
    if not isinstance(words, list | tuple):
        return words
    parts, joined_words, start = [str(word) for word in words], [], 0
    while start < len(parts):
        for end in range(min(len(parts), start + 4), start, -1):
            word = ", ".join(parts[start:end])
            if word.casefold() in _TUI_OF or end == start + 1:
                break
        tui = _TUI_OF.get(word.casefold())
        joined_words.append(TYPES[tui] if tui else word.upper() if re.fullmatch(r"[tT]\d{3}", word) else word)
        start = end
    return tuple(joined_words)


def tuis_of(types: tuple[str, ...], groups: tuple[str, ...]) -> set[str]:
    """The types' numbers: of types by their names or numbers, of unknown ones what was given, and of whole groups."""
    tuis = {tui for tui, group in GROUP_OF.items() if group in groups} | set(types)
    return tuis | {_TUI_OF[name.casefold()] for name in types if name.casefold() in _TUI_OF}
