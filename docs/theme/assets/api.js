// Draws the API reference from the lab's own OpenAPI document. "Try it out" is offered for reading only.
const place = document.getElementById("reference");
window.ui = SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  supportedSubmitMethods: ["get", "head"],
  validatorUrl: null,
});
