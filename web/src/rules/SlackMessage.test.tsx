import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { blocksOf, SlackMessage } from "./SlackMessage";

function show(blocks: unknown[]) {
  render(<SlackMessage blocks={blocksOf(JSON.stringify({ blocks })) ?? []} />);
}

test("the menu of a bot's message is shown by what it asks", () => {
  show([
    {
      type: "actions",
      elements: [
        { type: "button", text: { type: "plain_text", text: "Acknowledge" } },
        { type: "static_select", placeholder: { type: "plain_text", text: "Snooze" }, options: [] },
      ],
    },
  ]);
  expect(screen.getByText("Acknowledge")).toBeInTheDocument();
  expect(screen.getByText("Snooze ▾")).toBeInTheDocument();
});

test("what a person has written of blocks may leave anything out", () => {
  show([
    { type: "header" },
    { type: "section" },
    { type: "actions", elements: [{ type: "datepicker" }] },
    { type: "context", elements: [{ type: "image", image_url: "https://example.com/a.png", alt_text: "A cat" }] },
    { type: "video" },
  ]);
  expect(screen.getByText("datepicker")).toBeInTheDocument();
  expect(screen.getByText("A cat")).toBeInTheDocument();
  expect(screen.getByText(/type video/)).toBeInTheDocument();
});
