"""The little ontology of `sample` in the XML of MeSH, ICD-10-CM, ClaML and Orphanet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from sample import DEFINITION, NAMES, Sample, write_text


def element(tag: str, *content: str, **attributes: str) -> str:
    """An element around other elements, or around text that `text` has escaped."""
    written = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{tag}{written}>{''.join(content)}</{tag}>\n"


def text(tag: str, content: str, **attributes: str) -> str:
    return element(tag, escape(content), **attributes)


def mesh_term(name: str, code: str = "T1", **attributes: str) -> str:
    return element("Term", text("TermUI", code), text("String", name), **{"IsPermutedTermYN": "N", **attributes})


def mesh_concept(
    concept_id: str, names: Sequence[str], *more: str, preferred: bool = True, note: str = "", types: str = ""
) -> str:
    parts = [text("ConceptUI", concept_id), element("ConceptName", text("String", names[0]))]
    if note:
        parts.append(text("ScopeNote", f"{note}\n    "))
    if types:
        parts.append(element("SemanticTypeList", element("SemanticType", text("SemanticTypeName", types))))
    parts += [*more, element("TermList", *(mesh_term(name) for name in names))]
    return element("Concept", *parts, PreferredConceptYN="Y" if preferred else "N")


def mesh_record(
    record_id: str, name: str, *concepts: str, trees: Sequence[str] = (), more: str = "", kind: str = "Descriptor"
) -> str:
    return element(
        f"{kind}Record",
        text(f"{kind}UI" if kind != "Supplemental" else "SupplementalRecordUI", record_id),
        element(f"{kind}Name" if kind != "Supplemental" else "SupplementalRecordName", text("String", name)),
        element("TreeNumberList", *(text("TreeNumber", tree) for tree in trees)) if trees else "",
        more,
        element("ConceptList", *concepts),
        **({"SCRClass": "1"} if kind == "Supplemental" else {}),
    )


def mesh_file(*records: str, kind: str = "Descriptor", language: str = "eng") -> str:
    root = f"{kind}RecordSet"
    return (
        f'<?xml version="1.0"?>\n<!DOCTYPE {root} SYSTEM "https://www.nlm.nih.gov/databases/dtd/x.dtd">\n'
        f'<{root} LanguageCode="{language}">\n' + "".join(records) + f"</{root}>\n"
    )


def disorder(
    number: str,
    name: str,
    synonyms: Sequence[str] = (),
    *,
    kind: str = "disease",
    flags: Sequence[int] = (1,),
    more: str = "",
    definition: str = "",
    language: str = "en",
) -> str:
    def named(tag: str, content: str, **attributes: str) -> str:
        return element(tag, text("Name", content, lang=language), **attributes)

    section = element(
        "TextSection", named("TextSectionType", "Definition", id="16907"), text("Contents", definition), lang=language
    )
    return element(
        "Disorder",
        text("OrphaCode", number),
        text("Name", name, lang=language),
        element("DisorderFlagList", *(element("DisorderFlag", text("Value", str(flag))) for flag in flags)),
        element("SynonymList", *(text("Synonym", synonym, lang=language) for synonym in synonyms)),
        named("DisorderType", kind, id="21394"),
        named("DisorderGroup", "Disorder", id="36547"),
        more,
        element("SummaryInformationList", element("SummaryInformation", element("TextSectionList", section)))
        if definition
        else "",
        id=f"1{number}",
    )


def association(target: str, kind: str = "Moved to", kind_id: str = "21471") -> str:
    return element(
        "DisorderDisorderAssociationList",
        element(
            "DisorderDisorderAssociation",
            element("TargetDisorder", text("OrphaCode", target), id=f"1{target}"),
            '<RootDisorder id="1" cycle="true"/>',
            element("DisorderDisorderAssociationType", text("Name", kind, lang="en"), id=kind_id),
        ),
    )


def orphanet_file(*disorders: str) -> str:
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + element(
        "JDBOR",
        element("Availability", element("Licence", text("ShortIdentifier", "CC-BY-4.0"))),
        element("DisorderList", *disorders, count=str(len(disorders))),
        date="2025-12-09",
    )


def classification_file(*pairs: tuple[str, str]) -> str:
    """(child, parent), each as a tree of two."""

    def node(number: str, *children: str) -> str:
        return element(
            "ClassificationNode",
            element("Disorder", text("OrphaCode", number), id=f"1{number}"),
            element("ClassificationNodeChildList", *children, count=str(len(children))),
        )

    roots = (node(parent, node(child)) for child, parent in pairs)
    return '<?xml version="1.0" encoding="ISO-8859-1"?>\n' + element(
        "JDBOR",
        element(
            "ClassificationList", element("Classification", element("ClassificationNodeRootList", *roots), id="146")
        ),
    )


def diagnosis(code: str, title: str, inclusions: Sequence[str] = (), *more: str) -> str:
    terms = element("inclusionTerm", *(text("note", name) for name in inclusions)) if inclusions else ""
    return element("diag", text("name", code), text("desc", title), terms, *more)


def chapter(*content: str, number: str = "9", title: str = "disease (X00-X99)") -> str:
    return element("chapter", text("name", number), text("desc", title), *content)


def icd_file(*chapters: str) -> str:
    head = text("version", "2026") + element("introduction", text("introSection", "Excludes1"))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + element("ICD10CM.tabular", head, *chapters)


def rubric(kind: str, *labels: str, language: str = "en") -> str:
    """Labels that are XML already."""
    return element("Rubric", *(element("Label", label, **{"xml:lang": language}) for label in labels), kind=kind)


def claml_class(
    code: str, title: str, *content: str, above: Sequence[str] = (), kind: str = "category", language: str = "en"
) -> str:
    titled = rubric("preferred", escape(title), language=language) if title else ""
    return element(
        "Class", *(element("SuperClass", code=code) for code in above), *content, titled, code=code, kind=kind
    )


def claml_file(*content: str, language: str = "en") -> str:
    return '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE ClaML SYSTEM "ClaML.dtd">\n' + element(
        "ClaML",
        element("Meta", name="lang", value=language),
        element("Identifier", authority="WHO", uid="icd10_2019"),
        text("Title", "International Classification", name="ICD-10-EN-2019", version="2019", date="2018-10-01"),
        element("ClassKinds", *(element("ClassKind", name=kind) for kind in ("category", "block", "chapter"))),
        element("RubricKinds", element("RubricKind", name="preferred", inherited="false")),
        *content,
        version="2.0.0",
    )


MESH = mesh_file(
    *(
        mesh_record(
            concept_id,
            names[0],
            mesh_concept(f"M{number}", names, types="disease", note=DEFINITION if concept_id == "X:1" else ""),
            trees=trees,
        )
        for number, ((concept_id, names), trees) in enumerate(
            zip(NAMES.items(), (["C14.280.647"], ["C14.280", "F03"], ["C09.1"]), strict=True)
        )
    )
)

ICD10CM = icd_file(
    chapter(
        element(
            "section",
            text("desc", "Ischemic (X00-X09)"),
            diagnosis("X:2", NAMES["X:2"][0], NAMES["X:2"][1:], diagnosis("X:1", NAMES["X:1"][0], NAMES["X:1"][1:])),
            diagnosis("X:3", NAMES["X:3"][0], NAMES["X:3"][1:]),
            id="X00-X09",
        )
    )
)

CLAML = claml_file(
    element("ModifierClass", rubric("preferred", "of the left side"), code="1", modifier="S1_5"),
    *(
        claml_class(
            code,
            names[0],
            *(rubric("inclusion", escape(name)) for name in names[1:]),
            rubric("definition", escape(DEFINITION)) if code == "X:1" else "",
            element("ModifiedBy", code="S1_5", all="false"),
            above=("X:2",) if code == "X:1" else ("I",),
        )
        for code, names in NAMES.items()
    ),
    claml_class("I", "disease", kind="chapter"),
)

ORPHANET = orphanet_file(
    *(
        disorder(str(number), names[0], names[1:], definition=DEFINITION if number == 1 else "")
        for number, names in enumerate(NAMES.values(), 1)
    ),
    disorder("4", "obsolete coronary", flags=(1, 8192, 256), more=association("1")),
)


def _write_orphanet(folder: Path) -> str:
    (folder / "en_product1.xml").write_text(ORPHANET, encoding="utf-8")
    (folder / "en_product3_146.xml").write_text(classification_file(("1", "2"), ("1", "2")), encoding="latin-1")
    return str(folder)


SAMPLES = {
    "mesh": Sample("mesh", write_text("desc2025.xml", MESH), has_relations=True, has_types=True),
    "icd10cm": Sample(
        "icd10cm",
        write_text("icd10cm_tabular_2026.xml", ICD10CM),
        {"headings": "no"},
        has_relations=True,
        has_types=True,
        has_definitions=False,
        order=("X:2", "X:1", "X:3"),
    ),
    "claml": Sample("claml", write_text("icd10.xml", CLAML), {"kinds": "category"}, has_relations=True, has_types=True),
    "orphanet": Sample(
        "orphanet",
        _write_orphanet,
        has_relations=True,
        has_types=True,
        has_obsolete=True,
        codes={f"ORPHA:{number}": f"X:{number}" for number in range(1, 5)},
    ),
}
