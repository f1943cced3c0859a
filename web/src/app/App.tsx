import { MantineProvider } from "@mantine/core";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { RequireSession } from "../access/RequireSession";
import { LiveProvider } from "../api/LiveProvider";
import { UndoProvider } from "../inbox/undo";
import { CommandProvider } from "../ui/commands";
import { colorScheme, theme } from "../ui/theme";
import { ToastProvider } from "../ui/toast";
import type { createAppRouter } from "./router";

export function App({ cache, router }: { cache: QueryClient; router: ReturnType<typeof createAppRouter> }) {
  return (
    <MantineProvider theme={theme} colorSchemeManager={colorScheme} defaultColorScheme="auto" withCssVariables={false}>
      <QueryClientProvider client={cache}>
        <RequireSession>
          <LiveProvider>
            <ToastProvider>
              <CommandProvider>
                <UndoProvider>
                  <RouterProvider router={router} />
                </UndoProvider>
              </CommandProvider>
            </ToastProvider>
          </LiveProvider>
        </RequireSession>
      </QueryClientProvider>
    </MantineProvider>
  );
}
