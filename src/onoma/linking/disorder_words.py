"""What the rules for composite mentions know about English words: disorders, parts of the body, prefixes."""

from __future__ import annotations

import re

from onoma.linking.word_lists import listed

_NEED_A_MODIFIER = listed(
    """
    abnormality anomaly cancer carcinoma damage defect deficiency deficit disease disorder disturbance dysfunction
    dystrophy failure form impairment infection injury insufficiency lesion loss malformation malignancy neoplasm
    problem syndrome toxicity tumor tumour
    """
)
"""Words for disorders that hardly name one alone."""

_NEED_A_COMPLEMENT = listed("difficulty inability lack loss shortness")
"""Words for disorders that name one together with what stands behind "of" or "in": "shortness of breath"."""

_STAND_ALONE = listed(
    """
    anorexia anxiety constipation cough depression diarrhea diarrhoea dizziness fatigue fever headache insomnia malaise
    migraine nausea palpitation rash sweating tiredness vertigo vomiting weakness
    """
)
"""Words for disorders that are of nothing: no "fatigue of breath"."""

_DISORDERS = _NEED_A_MODIFIER | listed(
    """
    abscess absence abuse ache addiction agenesis aggression agitation aids allergy aneurysm anxiety apnea apnoea
    arrest arrhythmia asthma atresia attack backache bleeding blindness block blurring bruising burn burning
    calcification cataract cirrhosis cleft colic coma confusion constipation contracture convulsion cough cramp
    crisis cyst deafness death deformity degeneration dehydration delay delirium delusion dependence depression
    diabetes diarrhoea difficulty dilatation dilation discomfort dislocation distress dizziness drowsiness dryness
    edema effusion embolism enlargement epilepsy eruption erythema fatigue fever fibrosis fistula fracture gangrene
    glaucoma gout haemorrhage hallucination headache hemorrhage hoarseness hyperactivity hypertension hypotension
    inability incontinence infarct infarction inflammation influenza irritability irritation itchiness itching
    jaundice lack lupus measles melanoma migraine mortality narrowing nausea nervousness nodule numbness obesity
    obstruction oedema overdose pain palpitation palsy poisoning polydactyly polyp pregnancy pruritus psoriasis rash
    redness reflux regurgitation restlessness retardation rigidity ringing rupture sedation seizure sepsis shock
    shortness sleepiness soreness spasm spasticity stiffness stone stroke suicide sweating swelling symptom syncope
    tenderness thickening tightness tingling tiredness tremor twitching ulcer ulceration vertigo vomiting wasting
    weakness withdrawal wound
    """
)

_DISORDER_ENDING = re.compile(
    r"(?:itis|itides|oma|omata|osis|iasis|stasis|emia|pathy|algia|uria|rrho?ea|plegia|paresis|trophy|plasia|penia"
    r"|phobia|megaly|ectasi[as]|rrhagi?[ae]|pno?ea|philia|phagia|phasia|esthesia|kinesia|tonia|cardia|opia|lepsy"
    r"|phylaxis|axia|somnia|mentia|orexia|hernia|hypoxia|clampsia|pneumonia|alopecia|amnesia|cachexia|ralysis|molysis"
    r"|absorption|thyroidism|gonadism)\Z"
)

_ORGANS = listed(
    """
    abdomen adrenal arm axon bladder blood bone bowel brain breast bronchus cervix chest colon cornea ear elbow
    epididymis esophagus eye eyelid face finger foot gland gum hand head heart hip intestine jaw joint kidney knee
    larynx leg lens limb lip liver lung marrow mouth mucosa muscle neck nerve nose oesophagus ovary palate pancreas
    parathyroid pelvis penis pharynx pituitary placenta pleura prostate rectum retina scalp skin skull spine spleen
    stomach testis throat thumb thymus thyroid toe tongue tooth trachea ureter urethra uterus uvula vagina vulva
    """
)

_ADJECTIVES = listed(
    """
    acute anterior benign big blue broad deep early exterior external female great green grey hard high inferior inner
    interior internal large late left lesser long low lower major male malignant mild minor moderate narrow old outer
    posterior red right severe short small soft superior thick thin upper white wide yellow young
    """
)
_ADJECTIVE_ENDING = re.compile(r"\w{2,}(?:al|ic|ar|ary|ory|ous|ive|oid|ile|ed)\Z")

_STEM_PREFIXES = listed(
    "hypo hyper intra extra inter infra supra sub micro macro mono poly oligo pre post peri endo exo ecto hemi para "
    "tetra quadri uni bi multi neuro cardio broncho dys normo brady tachy auto allo iso hetero homo anti pro"
)


def is_disorder(word: str) -> bool:
    """Whether a name of a disorder may end in this word."""
    return any(form in _DISORDERS or _DISORDER_ENDING.search(form) is not None for form in _forms(word))


def needs_modifier(word: str) -> bool:
    """Whether the word, though one for a disorder, hardly names one alone."""
    return any(form in _NEED_A_MODIFIER for form in _forms(word))


def needs_complement(word: str) -> bool:
    """Whether the word, though one for a disorder, hardly names one without "of" or "in" behind it."""
    return any(form in _NEED_A_COMPLEMENT for form in _forms(word))


def stands_alone(word: str) -> bool:
    """Whether the word names a disorder that has no "of" behind it."""
    return any(form in _STAND_ALONE for form in _forms(word))


def is_organ(word: str) -> bool:
    """Whether the word is a part of the body."""
    return any(form in _ORGANS for form in _forms(word))


def is_adjective(word: str) -> bool:
    """Whether the word looks like an adjective."""
    lowered = word.lower()
    return lowered in _ADJECTIVES or _ADJECTIVE_ENDING.search(lowered) is not None


def without_prefix(word: str) -> str | None:
    """What a known prefix stands before: "thyroidism" of "hyperthyroidism"; ``None`` without such a prefix."""
    lowered = word.lower()
    found = [prefix for prefix in _STEM_PREFIXES if lowered.startswith(prefix) and len(word) - len(prefix) >= 3]
    return word[len(max(found, key=len)) :] if found else None


def _forms(word: str) -> tuple[str, ...]:
    """The word, and what it may be the plural of."""
    lowered = word.lower()
    forms = [lowered]
    for ending, singular in (("ies", "y"), ("es", "is"), ("es", ""), ("s", "")):
        if lowered.endswith(ending) and len(lowered) > len(ending) + 2:
            forms.append(lowered[: -len(ending)] + singular)
    return tuple(forms)
