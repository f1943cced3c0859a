package app

import (
	"errors"
	"fmt"

	"tocsin/internal/postgres"
	"tocsin/internal/seal"
)

// Validate returns everything that is wrong with the options as far as that can be
// known without connecting to anything, or nil. Each error names its setting.
func (o Options) Validate() error {
	o.applyDefaults()
	errs := []error{o.validate()}
	if o.PostgresURL != "" {
		errs = append(errs, postgres.CheckURL("TOCSIN_POSTGRES_URL", o.PostgresURL))
	}
	if o.EncryptionKey != "" {
		if _, err := seal.New(o.EncryptionKey); err != nil {
			errs = append(errs, fmt.Errorf("TOCSIN_ENCRYPTION_KEY: %w", err))
		}
	}
	if o.Source.Table != "" {
		if err := o.Source.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("mapping of the source: %w", err))
		}
	}
	return errors.Join(errs...)
}
