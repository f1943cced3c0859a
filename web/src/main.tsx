import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createCache } from "./api/cache";
import { App } from "./app/App";
import { watchStyles } from "./app/chunk/styles";
import { beginEarly } from "./app/early";
import { createAppRouter } from "./app/router";
import "./ui/base.css";

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element #root");
watchStyles();
const cache = createCache();
const router = createAppRouter();
beginEarly(cache, router, window.location.pathname);
createRoot(root).render(
  <StrictMode>
    <App cache={cache} router={router} />
  </StrictMode>,
);
