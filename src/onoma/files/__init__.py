"""Files as readers want them: archives, lines, fields, JSON, XML and RDF, checked and in bounded memory."""
