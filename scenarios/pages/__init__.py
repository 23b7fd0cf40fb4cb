"""HTML pages: `document` puts a page together and places plotly.js, `charts` draws a figure into it."""
