"""One module for each format; see `onoma.terminology.formats`."""
